-- Sliding log, exact: when each request came and what it cost, oldest first. State: a list of times, one of costs. Text:
-- TIME:COST;TIME:COST...

local function sliding_log()
	return {
		-- A request costs no more than the burst, and that is 1000 at the most; so no log is longer either.
		read = function(text)
			local times, costs, count, length = {}, {}, 0, 0
			for time, spent in string.gmatch(text, '(%d+):(%d+)') do
				count = count + 1
				if #time > 16 or #spent > 4 or count > 1000 then
					return nil
				end
				times[count], costs[count] = tonumber(time), tonumber(spent)
				length = length + #time + #spent + 2
			end
			return count > 0 and length == #text + 1 and not string.find(text, '[^%d:;]') and {times, costs}
		end,

		text = function(state)
			local parts = {}
			for n, time in ipairs(state[1]) do
				parts[n] = string.format('%d:%d', time, state[2][n])
			end
			return table.concat(parts, ';')
		end,

		bring = function(policy, moment, state)
			local now, times, costs, kept, clamped = moment.now, {}, {}, 0, false
			for n, time in ipairs(state and state[1] or times) do
				if time + policy.interval > now then
					if time > now then
						clamped = clamped or time > now + 1000000
						time = now
					end
					kept = kept + 1
					times[kept], costs[kept] = time, state[2][n]
				end
			end
			return {times, costs}, clamped
		end,

		used = function(policy, moment, state)
			local sum = 0
			for _, spent in ipairs(state[2]) do
				sum = sum + spent
			end
			return sum
		end,

		until_ = function(policy, moment, state, used, allowed)
			local n = 0
			while used > allowed do
				n = n + 1
				used = used - state[2][n]
			end
			return n > 0 and state[1][n] + policy.interval - moment.now or 0
		end,

		spend = function(policy, moment, state)
			local times, costs = state[1], state[2]
			local last = #times
			if times[last] == moment.now then
				costs[last] = costs[last] + moment.cost
			else
				times[last + 1], costs[last + 1] = moment.now, moment.cost
			end
			return state
		end,

		worthless_at = function(moment, state, width)
			return state[1][#state[1]] + width
		end,
	}
end
