-- All limits of one request, decided at once: either every enforced policy admits and every one is spent, or nothing is
-- spent. src/limit/decide.c is the same in C, and says more about the arithmetic. Times are whole microseconds.
--
-- This file knows token buckets alone, and of them the usual: their states are there as we write them, or are not there. All else,
-- such as what another configuration has written, is left to lua/engine.lua, which stands behind it in the script.
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
-- nothing else follows. A violated policy's debt d is given as -1 - d. What is left to lua/engine.lua is answered as it does, which
-- is longer.
--
-- A bucket's value is SIGNATURE STATE[,STATE]... with a signature of
--   TAG:INTERVAL:BURST [TAG:INTERVAL:BURST]...=   and for each policy the state in its algorithm's text: of a token bucket the time at
--                                                 which it is full again, in 16 digits
--   CODE                                          one token bucket of common form (src/limit/form.c), and of the time the last 13
--                                                 digits: all is one number, which Redis keeps in less memory. Of the times that end
--                                                 so, one in 115 days, it is the first that is later than two seconds ago: by then
--                                                 the key would have expired. If who asks brings the clock, it is the nearest one
-- What is neither is no state. Fields of other policies are carried along as long as they say something.
-- The key expires a second after its state is worth nothing.

local call, arguments = redis.call, ARGV
local expires, signature, need, capacity = arguments[1], arguments[2], arguments[3], arguments[4]
local is_one, now, past = capacity and not arguments[5], -expires, 5e12
if now <= 0 then
	local time = call('TIME')
	now, past = time[1] * 1000000 + time[2], 2000000
	if expires ~= '0' and now > expires + 0 then
		return {-1, now}
	end
end

-- One policy, without anything that it does not need: most of what a script costs are its strings and its calls.
if is_one then
	local key, length, debt = KEYS[1], #signature, 0
	local is_coded = length < 8
	local value = call('GET', key)
	capacity = capacity + 0
	if value then
		local is_ours = #value == length + (is_coded and 13 or 16) and string.sub(value, 1, length) == signature
			and not string.find(value, '%D', length + 1)
		if not is_ours then
			debt = nil
		elseif is_coded then
			debt = (string.sub(value, -13) - now + past) % 1e13 - past
		else
			debt = string.sub(value, -16) - now
		end
	end
	if debt and debt <= capacity then
		if debt < 0 then
			debt = 0
		end
		local later = debt + need
		if later > capacity then
			return {0, now, -1 - debt}
		end
		value = is_coded and string.format('%s%013d', signature, (now + later) % 1e13) or string.format('%s%016d', signature, now + later)
		call('SET', key, value, 'PX', string.format('%d', later / 1000 + 1001))
		return {1, now, later}
	end
end

-- Any number of limits. `first` is where the next one's arguments begin, `r` what of the reply is known.
local admitted, is_usual, reply, items, first, r = true, true, {1, now}, {}, 2, 2
for k = 1, #KEYS do
	local n, shadow = 1, false
	if not is_one then
		n = arguments[first] + 0
		first = first + 1
		if n < 0 then
			n, shadow = -n, true
		end
	end
	local signature, value, from = arguments[first], call('GET', KEYS[k])
	local length = #signature
	local is_coded = length < 8
	if value then
		from = #value == length + (is_coded and 13 or 17 * n - 1) and string.sub(value, 1, length) == signature
			and not string.find(value, '[^%d,]', length + 1) and length + 1
		if not from then
			is_usual = false
			break
		end
	end
	local item = {admits = true, signature = signature, is_coded = is_coded, r = r, n = n}
	for p = 1, n do
		local need, capacity, owed = arguments[first + 2 * p - 1] + 0, arguments[first + 2 * p] + 0, 0
		if from then
			local time = tonumber(string.sub(value, from, from + 15))
			owed, from = (time or 0) - now, from + 17
			if is_coded then
				owed = (owed + past) % 1e13 - past
			end
			is_usual = is_usual and time and owed <= capacity + 1000000
			if owed < 0 then
				owed = 0
			end
		end
		r = r + 1
		item[p], reply[r] = owed + need, owed
		if owed + need > capacity then
			reply[r], item.admits = -1 - owed, false
		end
	end
	first = first + 1 + 2 * n
	items[k] = item
	admitted = admitted and (item.admits or shadow)
end

if is_usual then
	for k = 1, admitted and #KEYS or 0 do
		local item = items[k]
		if item.admits then
			local value, longest = item.signature, 0
			for p = 1, item.n do
				local later = item[p]
				reply[item.r + p] = later
				longest = later > longest and later or longest
				if item.is_coded then
					value = string.format('%s%013d', value, (now + later) % 1e13)
				else
					value = string.format(p == 1 and '%s%016d' or '%s,%016d', value, now + later)
				end
			end
			call('SET', KEYS[k], value, 'PX', string.format('%d', longest / 1000 + 1001))
		end
	end
	reply[1] = admitted and 1 or 0
	return reply
end
