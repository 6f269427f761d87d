-- All limits of one request, decided at once: either every enforced policy admits and every one is spent, or nothing is
-- spent. src/limit/decide.c is the same in C, and says more about the arithmetic.
--
-- KEYS    one bucket for each limit and identity
-- ARGV    now      microseconds since 1970; empty: this server's clock, which all gateways then share
--         expires  after this time, on the same clock, nothing is spent; 0: never
--         cost     tokens
--         then for each key:
--         n        how many policies; negative: a shadow limit, decided by itself, which never rejects the request
--         code     if n is 1 or -1: the policy's code, 0 if it has none
--         then for each policy:  tag, interval (of one token), capacity (of the bucket); both in microseconds
--
-- Returns {status, now, debt, debt, ...}, a debt for each policy in order. Status: bit 0 admitted, bit 1 a stored time was impossibly far
-- ahead and was taken as empty; -1: too late, nothing else follows. A violated policy's debt d is given as -1 - d.
--
-- A bucket's value is one of
--   CODE TAT             one number: a policy of common form; TAT has 16 digits
--   "1 TAG:INTERVAL:STATE TAG:INTERVAL:STATE ..."
-- What is neither is no state. Fields of other policies are carried along; one whose STATE is no time, as a later version may write,
-- for INTERVAL. The key expires a second after its state is worth nothing.

local clock, expires, cost = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now
if clock == '' then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
else
	now = tonumber(clock)
end
if expires > 0 and now > expires then
	return {-1, now}
end

-- The tag and interval behind a code that is not this limit's own: another configuration wrote it.
local function of_code(code)
	local windows = {{'6a88d96d', 1}, {'96549538', 60}, {'7343d903', 3600}, {'6bc16cfa', 86400}}
	local window = windows[math.floor((code - 1) / 230) + 1]
	local count = (code - 1) % 230 + 1
	if count >= 190 then
		count = 1000 + 100 * (count - 190)
	elseif count >= 100 then
		count = 100 + 10 * (count - 100)
	end
	if window then
		return window[1], math.ceil(window[2] * 1000000 / count)
	end
end

-- A bucket's fields by tag: intervals, states.
local function fields_of(value)
	local intervals, states = {}, {}
	if string.byte(value, 2) == 32 then
		if string.byte(value) == 49 then
			for tag, interval, state in string.gmatch(value, ' (%x+):(%d+):([^ ]+)') do
				intervals[tag], states[tag] = tonumber(interval), state
			end
		end
	elseif #value > 16 and #value < 20 and not string.find(value, '%D') then
		local tag, interval = of_code(tonumber(string.sub(value, 1, -17)))
		if tag then
			intervals[tag], states[tag] = interval, string.sub(value, -16)
		end
	end
	return intervals, states
end

local admitted, clamped = true, false
local reply = {0, now}
local plans = {}
local at = 4
for k = 1, #KEYS do
	local n, code = tonumber(ARGV[at]), '0'
	local shadow = n < 0
	at = at + 1
	if shadow then
		n = -n
	end
	if n == 1 then
		code = ARGV[at]
		at = at + 1
	end
	local value = redis.call('GET', KEYS[k])
	local intervals, states, tat
	if value then
		if code ~= '0' and #value == #code + 16 and string.sub(value, 1, #code) == code then
			tat = tonumber(string.sub(value, -16))
		end
		if not tat then
			intervals, states = fields_of(value)
		end
	end
	local admits = true
	local debts = {}
	for p = 1, n do
		local interval, capacity = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
		local debt, old = 0, interval
		if states then
			local tag = ARGV[at]
			old, tat = intervals[tag], tonumber(states[tag])
		end
		if tat and tat > now then
			debt = tat - now
			if old ~= interval then
				debt = math.ceil(debt / old * interval)
			end
			if debt > capacity + 1000000 then
				debt, clamped = capacity, true
			end
		end
		if debt + cost * interval > capacity then
			admits = false
			debts[p] = -1 - debt
		else
			debts[p] = debt
		end
		at = at + 3
	end
	if not admits and not shadow then
		admitted = false
	end
	plans[k] = {n, code, at - 3 * n, debts, admits, intervals, states}
end

for k = 1, #KEYS do
	local n, code, from, debts, admits, intervals, states = unpack(plans[k])
	if admits and admitted then
		local longest, fields = 0, nil
		for p = 1, n do
			local interval = ARGV[from + 1]
			local debt = debts[p] + cost * interval
			debts[p] = debt
			if debt > longest then
				longest = debt
			end
			if code == '0' or states then
				fields = (fields or '1') .. string.format(' %s:%s:%016.0f', ARGV[from], interval, now + debt)
				if states then
					states[ARGV[from]] = nil
				end
			end
			from = from + 3
		end
		-- What other policies have left here: kept while it says something.
		local others = false
		if states then
			for tag, state in pairs(states) do
				local tat, interval = tonumber(state), intervals[tag]
				local life = tat and tat - now or interval
				if life > 0 then
					fields = string.format('%s %s:%.0f:%s', fields, tag, interval, state)
					others = true
					longest = math.max(longest, life)
				end
			end
		end
		if code ~= '0' and not others then
			fields = string.format('%s%016.0f', code, now + longest)
		end
		redis.call('SET', KEYS[k], fields, 'PX', math.ceil(longest / 1000) + 1000)
	end
	for p = 1, n do
		reply[#reply + 1] = debts[p]
	end
end

reply[1] = (admitted and 1 or 0) + (clamped and 2 or 0)
return reply
