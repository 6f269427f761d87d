-- Concurrent requests: each holds a lease that it gives back when it ends, or that ends by itself. State: a list of leases, as
-- text, and one of the times at which they end, in the order of taking. Text: LEASE-END;LEASE-END...

local function concurrent()
	return {
		cost = 1,

		read = function(text)
			local holders, ends, count, length = {}, {}, 0, 0
			for holder, time in string.gmatch(text, '(%d+)%-(%d+)') do
				count = count + 1
				if #holder > 16 or #time > 16 or count > 1000 then
					return nil
				end
				holders[count], ends[count] = holder, tonumber(time)
				length = length + #holder + #time + 2
			end
			return count > 0 and length == #text + 1 and not string.find(text, '[^%d;-]') and {holders, ends}
		end,

		text = function(state)
			local parts = {}
			for n, time in ipairs(state[2]) do
				parts[n] = string.format('%s-%d', state[1][n], time)
			end
			return table.concat(parts, ';')
		end,

		-- The asker's own lease is left out: spending puts it in anew, so that it never counts twice.
		bring = function(policy, moment, state)
			local now, holders, ends, kept, clamped = moment.now, {}, {}, 0, false
			for n, time in ipairs(state and state[2] or ends) do
				if time > now and state[1][n] ~= moment.lease then
					if time > now + policy.interval + 1000000 then
						time, clamped = now + policy.interval, true
					end
					kept = kept + 1
					holders[kept], ends[kept] = state[1][n], time
				end
			end
			return {holders, ends}, clamped
		end,

		used = function(policy, moment, state)
			return #state[1]
		end,

		-- Nobody knows when a request ends.
		until_ = function(policy, moment, state, used, allowed)
			return used <= allowed and 0 or 1000000
		end,

		spend = function(policy, moment, state)
			local count = #state[1] + 1
			state[1][count], state[2][count] = moment.lease, moment.now + policy.interval
			return state
		end,

		worthless_at = function(moment, state)
			return math.max(0, unpack(state[2]))
		end,

		is_held = function(moment, state)
			for n, holder in ipairs(state[1]) do
				if holder == moment.lease then
					return state[2][n] > moment.now
				end
			end
		end,
	}
end
