-- All limits of one request, decided at once: either every enforced policy admits and every one is spent, or nothing is
-- spent. src/limit/decide.c is the same in C, and says more about the arithmetic. Times are whole microseconds.
--
-- KEYS    one bucket for each limit and identity
-- ARGV    expires   past this time on this server's clock, which all gateways share, nothing is spent; 0: never.
--                   Negative: it is now -expires (tests and tools bring their own clock), and nothing expires
--         then for each key:
--         n         how many policies; negative: a shadow limit, decided by itself, which never rejects the request
--         signature of the limit: what its state begins with
--         then for each policy:
--         need      the cost of the request, and
--         capacity  of the bucket, both in microseconds of refilling
--         With one key of one policy that is no shadow, n is left out.
--
-- Returns {status, now, debt, debt, ...}, a debt for each policy in order: what is owed after the request if it was spent, else
-- before. Status: bit 0 admitted, bit 1 a stored time was impossibly far ahead and the bucket was set to empty; -1: too late,
-- nothing else follows. A violated policy's debt d is given as -1 - d.
--
-- A bucket's value is SIGNATURE STATE[,STATE]... with a signature of
--   CODE                                        one policy of common form (src/limit/policy.c): all is one number, which
--                                               Redis keeps in less memory
--   TAG:INTERVAL:BURST [TAG:INTERVAL:BURST]...= all others
-- and for each policy the time at which its bucket is full again, in 16 digits. What is neither is no state. Fields of other policies
-- are carried along as long as they say something; one whose state is no time, as a later version may write, for INTERVAL.
-- The key expires a second after its state is worth nothing.

local expires, now = ARGV[1] + 0
if expires < 0 then
	now = -expires
else
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
	if expires > 0 and now > expires then
		return {-1, now}
	end
end

-- One policy, and its state is as we write it: the usual case, without anything that it does not need.
if #ARGV == 4 then
	local signature, capacity = ARGV[2], ARGV[4] + 0
	local value = redis.call('GET', KEYS[1])
	local debt = 0
	if value then
		local length = #signature
		local tat = #value == length + 16 and string.sub(value, 1, length) == signature and tonumber(string.sub(value, -16))
		debt = tat and tat - now
	end
	if debt and debt <= capacity then
		if debt < 0 then
			debt = 0
		end
		local later = debt + ARGV[3]
		if later > capacity then
			return {0, now, -1 - debt}
		end
		redis.call('SET', KEYS[1], signature .. string.format('%016d', now + later), 'PX',
			string.format('%d', later / 1000 + 1001))
		return {1, now, later}
	end
end

-- The policy that a code stands for: its tag, interval and burst.
local function of_code(code)
	local windows = {{'6a88d96d', 1}, {'96549538', 60}, {'7343d903', 3600}, {'6bc16cfa', 86400}}
	local window = windows[math.ceil(code / 230)]
	local count = (code - 1) % 230 + 1
	if count >= 190 then
		count = 1000 + 100 * (count - 190)
	elseif count >= 100 then
		count = 100 + 10 * (count - 100)
	end
	return window and {window[1], math.ceil(window[2] * 1000000 / count), count}
end

-- A signature's policies in order: {tag, interval, burst} each.
local function policies_of(signature)
	local list = {}
	if string.find(signature, '^%d+$') then
		list[1] = of_code(tonumber(signature))
	else
		for tag, interval, burst in string.gmatch(signature, '(%x+):(%d+):(%d+)') do
			list[#list + 1] = {tag, tonumber(interval), tonumber(burst)}
		end
	end
	return list
end

-- A bucket's fields by tag, whoever wrote them: {interval, burst, state, time} each; time is nil if the state is none.
local function fields_of(value)
	local fields = {}
	local signature, states = string.match(value, '^([%x: ]+=)(.*)$')
	if not signature and #value > 16 and #value < 20 and string.find(value, '^%d+$') then
		signature, states = string.sub(value, 1, -17), string.sub(value, -16)
	end
	if signature then
		local next_state = string.gmatch(states, '[^,]+')
		for _, policy in ipairs(policies_of(signature)) do
			local state = next_state()
			if state and policy[2] > 0 and policy[2] * policy[3] <= 3155760000000000 then
				fields[policy[1]] = {policy[2], policy[3], state,
					string.find(state, '^%d+$') and #state == 16 and tonumber(state)}
			end
		end
	end
	return fields
end

-- A policy with a state that another configuration wrote: what is owed, and whether there is no room for the request.
local function at_own_rate(owed, old, interval, need, capacity)
	local debt = owed
	if old ~= interval then
		debt = math.ceil(owed / old * interval)
	end
	local room = capacity - need
	if room < 0 then
		return math.min(debt, capacity), true
	end
	local wait = owed - room / interval * old
	if wait > 0 then
		return room + wait, true
	end
	return math.min(debt, room), false
end

local admitted, clamped = true, 0
local reply, later, plans = {0, now}, {}, {}
local short = #ARGV == 4
local at, i = 2, 2
for k = 1, #KEYS do
	local n, shadow = 1, false
	if not short then
		n = tonumber(ARGV[at])
		at = at + 1
		if n < 0 then
			n, shadow = -n, true
		end
	end
	local signature = ARGV[at]
	at = at + 1
	local plan = {n, signature}
	local value = redis.call('GET', KEYS[k])
	local from, policies
	if value then
		if #value == #signature + 17 * n - 1 and string.sub(value, 1, #signature) == signature
			and not string.find(value, '[^%d,]', #signature + 1) then
			from = #signature + 1
		else
			plan.fields, policies = fields_of(value), policies_of(signature)
		end
	end
	local admits = true
	for p = 1, n do
		local need, capacity = ARGV[at] + 0, ARGV[at + 1] + 0
		local owed, violated, most, field = 0
		if from then
			owed, most = (tonumber(string.sub(value, from, from + 15)) or 0) - now, capacity
			from = from + 17
		elseif policies then
			field = plan.fields[policies[p][1]]
			if field and field[4] then
				owed, most = field[4] - now, field[1] * field[2]
			else
				field = nil
			end
		end
		if owed < 0 then
			owed = 0
		elseif most and owed > most + 1000000 then
			owed, clamped, field = capacity, 2, nil
			plan.set_right = plan.set_right or {}
			plan.set_right[p] = string.format('%016d', now + capacity)
		end
		if field and owed > 0 then
			owed, violated = at_own_rate(owed, field[1], policies[p][2], need, capacity)
		elseif need > capacity then
			owed, violated = math.min(owed, capacity), true
		else
			violated = owed + need > capacity
		end
		i = i + 1
		later[i] = owed + need
		reply[i] = owed
		if violated then
			admits = false
			reply[i] = -1 - owed
		end
		at = at + 2
	end
	plan.admits, plan.value, plan.policies = admits, value, policies
	plans[k] = plan
	if not admits and not shadow then
		admitted = false
	end
end

-- What the fields still say, and how long: appended to a signature without its end and to states.
local function append(fields, signature, states, longest)
	for tag, field in pairs(fields) do
		local life = field[4] and field[4] - now or field[1]
		if life > 0 and not (field[4] and life > field[1] * field[2] + 1000000) then
			signature = string.format('%s%s:%.0f:%.0f ', signature, tag, field[1], field[2])
			states = states .. field[3] .. ','
			longest = math.max(longest, life)
		end
	end
	return signature, states, longest
end

-- The value after spending: our policies in order, then what others have left.
local function spent(plan, first)
	local signature, states, longest = plan[2], '', 0
	for p = 1, plan[1] do
		longest = math.max(longest, later[first + p])
		states = states .. string.format(p == 1 and '%016d' or ',%016d', now + later[first + p])
	end
	if plan.fields then
		local own = ''
		for _, policy in ipairs(plan.policies) do
			plan.fields[policy[1]] = nil
			own = string.format('%s%s:%.0f:%.0f ', own, policy[1], policy[2], policy[3])
		end
		local all, others, life = append(plan.fields, own, states .. ',', longest)
		if all ~= own then
			return string.sub(all, 1, -2) .. '=' .. string.sub(others, 1, -2), life
		end
	end
	return signature .. states, longest
end

-- The value when nothing is spent, but a bucket was set to empty.
local function set_right(plan)
	local fields, policies = plan.fields or fields_of(plan.value), plan.policies or policies_of(plan[2])
	for p, state in pairs(plan.set_right) do
		local policy = policies[p]
		fields[policy[1]] = {policy[2], policy[3], state, tonumber(state)}
	end
	local signature, states, longest = append(fields, '', '', 0)
	return string.sub(signature, 1, -2) .. '=' .. string.sub(states, 1, -2), longest
end

reply[1] = (admitted and 1 or 0) + clamped
local first = 2
for k = 1, #KEYS do
	local plan = plans[k]
	local spends = plan.admits and admitted
	if spends or plan.set_right then
		local value, longest = (spends and spent or set_right)(plan, first)
		redis.call('SET', KEYS[k], value, 'PX', string.format('%d', longest / 1000 + 1001))
	end
	for p = 1, spends and plan[1] or 0 do
		reply[first + p] = later[first + p]
	end
	first = first + plan[1]
end
return reply
