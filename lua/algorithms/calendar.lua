-- Calendar quota: so much until the day or month ends. The asker says when that is, since it knows the time zone. State: when
-- the period ends, and what is used of it. Text: END.USED

local function calendar()
	-- The first of the ends that is still to come; a whole period if the clocks are so far apart that none is.
	local function end_of(policy, now)
		for n = 1, 3 do
			if policy[n] > now then
				return policy[n]
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

		-- An end that another gateway has written stands: so those whose clocks or time zones differ agree. None is
		-- further ahead than a month of 31 days and an hour of daylight saving.
		bring = function(policy, moment, state)
			local now = moment.now
			if not state or state[1] <= now then
				return {end_of(policy, now), 0}
			end
			if state[1] > now + 32 * 86400000000 + 1000000 then
				return {end_of(policy, now), state[2]}, true
			end
			return {state[1], state[2]}
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
