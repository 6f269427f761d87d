-- Sliding window of two counters: what the present window has, and that part of the last one which the span of one window
-- back from now still covers, as if it had come evenly. State: index of the window since 1970, count of the last one, count
-- of this one. Text: INDEX.LAST.THIS

local function sliding_window()
	local function weighted(count, width, elapsed)
		return math.ceil(count * (width - elapsed) / width)
	end

	-- When in its window no more than `room` of `count` is left. The first guess may be rounded, and is set right.
	local function enough(count, width, room, elapsed)
		local at = math.max(elapsed, width - math.floor(room * width / count))
		while weighted(count, width, at) > room do
			at = at + 1
		end
		return at
	end

	return {
		read = function(text)
			local index, last, this = string.match(text, '^(%d+)%.(%d+)%.(%d+)$')
			if not index or #index > 16 then
				return nil
			end
			last, this = tonumber(last), tonumber(this)
			-- So that the sum is a whole number below 2^53.
			return last < 4503599627370496 and this < 4503599627370496 and {tonumber(index), last, this}
		end,

		text = function(state)
			return string.format('%d.%d.%d', state[1], state[2], state[3])
		end,

		-- What was counted in windows of another width counts as of now: no less than it does there.
		bring = function(policy, moment, state, width)
			local now, own = moment.now, policy.interval
			local index = math.floor(now / own)
			if not state then
				return {index, 0, 0}
			end
			local present = math.floor(now / width)
			local last, this = state[2], state[3]
			if state[1] == present - 1 then
				last, this = this, 0
			elseif state[1] < present then
				last, this = 0, 0
			end
			if width ~= own then
				last, this = 0, weighted(last, width, now - present * width) + this
			end
			return {index, last, this}, state[1] * width > now + 1000000
		end,

		used = function(policy, moment, state)
			local width = policy.interval
			return weighted(state[2], width, moment.now - state[1] * width) + state[3]
		end,

		until_ = function(policy, moment, state, used, allowed)
			if used <= allowed then
				return 0
			end
			local width = policy.interval
			local elapsed = moment.now - state[1] * width
			if state[3] <= allowed then
				return enough(state[2], width, allowed - state[3], elapsed) - elapsed
			end
			return width - elapsed + enough(state[3], width, allowed, 0)
		end,

		spend = function(policy, moment, state)
			state[3] = state[3] + moment.cost
			return state
		end,

		worthless_at = function(moment, state, width)
			return (state[1] + (state[3] > 0 and 2 or 1)) * width
		end,
	}
end
