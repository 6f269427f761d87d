-- Token bucket, kept as its theoretical arrival time (include/weir/policy.h). State: that time. Text: 16 digits.

local function token_bucket()
	-- Written by a clock that was ahead of this one. A debt run up under a larger burst is not that.
	local function is_impossible(now, full_at, interval, burst)
		return full_at - now > interval * burst + 1000000
	end

	-- A debt of another rate is the same number of tokens at this one, and so it is stored, or whoever is exhausted would go on to
	-- wait as long as before. It is never made less: another configuration may know a larger burst, and then that is kept with it.
	-- What would be owed for more than a hundred years cannot be stored, and waits at the rate that it had.
	local function at_own_rate(policy, owed, interval, burst)
		local own = policy.interval
		if interval == own then
			return owed
		end
		local debt = math.ceil(math.min(owed, interval * burst) / interval * own)
		if debt <= policy.burst * own then
			return debt, true
		elseif burst * own <= 3155760000000000 then
			return math.min(debt, burst * own), true, own, burst
		end
		return math.min(debt, 3155760000000000)
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
			local debt, is_anew, kept, kept_burst = at_own_rate(policy, full_at - now, interval, burst)
			return now + debt, false, is_anew, kept, kept_burst
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
