-- Calendar quota: so much until the day or month ends. The asker says when that is, since it knows the time zone. State: when
-- the period ends, and what is used of it. Text: END.USED

local function calendar()
	-- No period is longer than its window by more than three hours (src/limit/algorithm_calendar.c), and a second is forgiven.
	local function is_too_far(policy, now, ends)
		return ends > now + policy.interval + 10801000000
	end

	-- The first of the ends that is still to come; a whole period if the clocks are so far apart that none is, or that it is too far.
	local function end_of(policy, now)
		for n = 1, 3 do
			if policy[n] > now then
				return is_too_far(policy, now, policy[n]) and now + policy.interval or policy[n]
			end
		end
		return now + policy.interval
	end

	return {
		arguments = 3,

		read = function(text)
			local ends, used = string.match(text, '^(%d+)%.(%d+)$')
			if not ends or #ends > 16 then
				return nil
			end
			used = tonumber(used)
			return used < 4503599627370496 and {tonumber(ends), used}
		end,

		text = function(state)
			return string.format('%d.%d', state[1], state[2])
		end,

		-- An end that another gateway has written stands: so those whose clocks or time zones differ agree. But it must be the end of
		-- such a period as ours: if the quota was of a month and is of a day now, or the reverse, what is used stays used, until our
		-- own period ends.
		bring = function(policy, moment, state, interval)
			local now = moment.now
			if not state or state[1] <= now then
				return {end_of(policy, now), 0}
			end
			local is_other = interval ~= policy.interval
			local was_ahead = not is_other and is_too_far(policy, now, state[1])
			return {(is_other or was_ahead) and end_of(policy, now) or state[1], state[2]}, was_ahead, is_other
		end,

		used = function(policy, moment, state)
			return state[2]
		end,

		until_ = function(policy, moment, state, used, allowed)
			return used <= allowed and 0 or state[1] - moment.now
		end,

		spend = function(policy, moment, state)
			state[2] = state[2] + moment.cost
			return state
		end,

		worthless_at = function(moment, state)
			return state[1]
		end,
	}
end
