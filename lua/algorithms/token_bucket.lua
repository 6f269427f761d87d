-- Token bucket, kept as its theoretical arrival time (include/weir/policy.h). State: that time. Text: 16 digits.

local function token_bucket()
	-- Written by a clock that was ahead of this one. A debt run up under a larger burst is not that.
	local function is_impossible(now, full_at, interval, burst)
		return full_at - now > interval * burst + 1000000
	end

	-- Until it is spent on, a debt of another rate goes on to shrink at that one. So if it leaves no room, the wait is
	-- reckoned at the old rate, and the debt is given such that this wait follows.
	local function at_own_rate(policy, cost, owed, old)
		local debt = owed
		if old ~= policy.interval then
			debt = math.ceil(owed / old * policy.interval)
		end
		if cost > policy.burst then
			return math.min(debt, policy.burst * policy.interval)
		end
		local left = policy.burst - cost
		local wait = owed - left * old
		if wait > 0 then
			return left * policy.interval + wait
		end
		return math.min(debt, left * policy.interval)
	end

	return {
		read = function(text)
			return #text == 16 and not string.find(text, '%D') and tonumber(text)
		end,

		text = function(full_at)
			return string.format('%016d', full_at)
		end,

		bring = function(policy, moment, full_at, interval, burst)
			local now = moment.now
			if not full_at or full_at <= now then
				return now
			end
			if is_impossible(now, full_at, interval, burst) then
				return now + policy.burst * policy.interval, true
			end
			return now + at_own_rate(policy, moment.cost, full_at - now, interval)
		end,

		used = function(policy, moment, full_at)
			return math.ceil((full_at - moment.now) / policy.interval)
		end,

		until_ = function(policy, moment, full_at, used, allowed)
			local wait = full_at - moment.now - allowed * policy.interval
			return wait > 0 and wait or 0
		end,

		spend = function(policy, moment, full_at)
			return full_at + moment.cost * policy.interval
		end,

		worthless_at = function(moment, full_at, interval, burst)
			return is_impossible(moment.now, full_at, interval, burst) and moment.now or full_at
		end,
	}
end
