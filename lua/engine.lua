-- All limits of one request with policies of any algorithm, decided at once, as lua/decide.lua does for token buckets alone.
-- src/limit/decide.c is the same in C. This file stands behind those of lua/algorithms and lua/value.lua, in one script with them; and
-- in another behind lua/decide.lua too, which leaves to it what is not usual. Times are whole microseconds.
--
-- KEYS    for each limit its bucket, and behind it the one that is decided on instead if that is not there (create = 0)
-- ARGV    expires   as of lua/decide.lua
--         cost      of the request in tokens, at least 1. 0: nothing is decided; the lease is given back where it is held.
--                   -1: likewise, it is prolonged
--         lease     which names the request, as a number; 0: none. -1: it is only looked, and nothing is spent
--         then for each limit:
--         n         how many policies; negative: a shadow limit, decided by itself, which never rejects the request
--         create    1; 0: if its bucket is not there, the next key is decided on, so that no new one is made
--         signature of the limit: what its state begins with
--         then for each policy:
--         algorithm by name
--         burst     negative: a shadow policy, which never rejects, and is spent if it admits and the request is admitted
--         interval  of the policy's form: of token-bucket for one token, of concurrent the lease, else the window
--         ...       more numbers that the algorithm takes; of calendar three ends of periods, earliest first
--
-- Returns {status, now, overflowed, used, wait, reset, ...}. Status: as of lua/decide.lua. Overflowed: bit i is set if limit i, from
-- 0, was decided on its second key. Then three numbers for each policy in order, after the request if it was spent, else before:
-- the tokens that are used, -1 - used if it is violated; the wait until one more is free, or if it is violated until the cost would
-- pass (-1: never); and the wait until none is used. With a cost of 0 or -1: {status, now}, status 1 if the lease was held. Who only
-- looks is not admitted, whatever the policies say.
--
-- An algorithm is a function that makes a table of these. A state is whatever it likes; nil: nothing is known. One that was brought is
-- its own, and may be changed in place. A moment is {now, cost, lease}.
--   read(text)                                       the state; nil or false: it is none. No other algorithm's text is one
--   text(state)                                      the inverse; in it stands neither a comma nor an equals sign
--   bring(policy, moment, state, interval, burst)    the state, which was written for this form, in the policy's form and at this time;
--                                                    true if a clock that was set back had left it too far in the future; true if it
--                                                    is to be stored even if the request is rejected; and the interval of its form if
--                                                    that is not the policy's, and the burst likewise
--   used(policy, moment, state)                      tokens, of a state that was brought
--   until_(policy, moment, state, used, allowed)     the wait until at most so many of them are used
--   spend(policy, moment, state)                     the state after the request
--   worthless_at(moment, state, interval, burst)     from when on a state, of any form and not brought, says nothing
--   cost                                             in place of the request's
--   arguments                                        how many more numbers a policy has; it finds them as policy[1] and so on
--   give_back(moment, state)                         of leases: the state without this one; false or nil if it is not held
--   is_full(policy, moment, length, first, last)     of leases: whether a text of that length, with that first and that last record of
--                                                    33 characters each, holds all places; then what is between is left out
--
-- A function is made anew with each call of a script, and so is what it refers to. So there are few, the usual way does without
-- them, and what is rarely needed is made when it is.

local algorithms = {
	['token-bucket'] = token_bucket,
	['sliding-window'] = sliding_window,
	['sliding-log'] = sliding_log,
	['calendar'] = calendar,
	['concurrent'] = concurrent,
}

local moment = {now = -ARGV[1], past = 5e12, cost = ARGV[2] + 0, lease = ARGV[3]}
if moment.now <= 0 then
	local time, expires = redis.call('TIME'), -moment.now
	moment.now, moment.past = time[1] * 1000000 + time[2], 2000000
	if expires > 0 and moment.now > expires then
		return {-1, moment.now}
	end
end

-- What it takes to read and write values that are not simply our states.
local function rarely(readers, algorithms, moment)
	local forms_of, fields_of = readers()

	-- How long another limit's field goes on to say something. No two algorithms write alike, so the one that can read it knows;
	-- what none can, as a later version may write, is kept for its interval.
	local function life_of(field)
		for _, make in pairs(algorithms) do
			local algorithm = make()
			local state = algorithm.read(field.text)
			if state then
				return algorithm.worthless_at(moment, state, field.interval, field.burst) - moment.now
			end
		end
		return field.interval
	end

	-- Gives the policies their states, with the forms that they were written for.
	local function load(item)
		local fields, forms = fields_of(item.value), forms_of(item.signature)
		for p, policy in ipairs(item) do
			local field = fields[forms[p].tag]
			local state = field and policy.algorithm.read(field.text)
			policy.state, policy.form = state or nil, state and field or nil
		end
	end

	-- The value with what has changed, in its form, and all else as it is while it says something; and for how long it does; or nothing if
	-- there is nothing left that does. Beyond 16 fields others' give way, those that were written longest ago first.
	local function mixed(item)
		local fields, forms = fields_of(item.value or ''), forms_of(item.signature)
		local signature, states, longest = {}, {}, 0
		local function add(form, text, life)
			if life > 0 then
				signature[#signature + 1] = string.format('%s:%.0f:%.0f', form.tag, form.interval, form.burst)
				states[#states + 1] = text
				longest = math.max(longest, life)
			end
		end
		local function add_own(form, policy, state, text)
			add(form, text, policy.algorithm.worthless_at(moment, state, form.interval, form.burst) - moment.now)
		end
		for p, policy in ipairs(item) do
			local form = forms[p]
			local field = fields[form.tag]
			if policy.changed then
				form.interval, form.burst = policy.kept or form.interval, policy.kept_burst or form.burst
				add_own(form, policy, policy.changed, policy.algorithm.text(policy.changed))
			elseif policy.state then
				add_own(field, policy, policy.state, field.text)
			end
			if field then
				field.is_own = true
			end
		end
		local own = #states
		for _, field in ipairs(fields) do
			if not field.is_own and #states < 16 then
				add(field, field.text, life_of(field))
			end
		end
		if #item == 1 and own == 1 and #states == 1 and item[1].changed and not item[1].kept then
			return item.signature .. states[1], longest
		end
		return #states > 0 and table.concat(signature, ' ') .. '=' .. table.concat(states, ','),
			math.min(longest, 2 * 3155760000000000)
	end

	-- Whether the lease was held under the item's key; then it is given back, or prolonged. The other leases stay as they are, and so
	-- does the form if it is the longer one.
	local function change_lease(item)
		local held = false
		load(item)
		for _, policy in ipairs(item) do
			local algorithm = policy.algorithm
			local left = policy.state and algorithm.give_back and algorithm.give_back(moment, policy.state)
			if left then
				local interval = policy.form.interval
				if moment.cost < 0 then
					left, interval = algorithm.spend(policy, moment, left), math.max(interval, policy.interval)
				end
				held, policy.changed, policy.kept = true, left, interval ~= policy.interval and interval or nil
			end
		end
		if held then
			local value, life = mixed(item)
			if value then
				redis.call('SET', item.key, value_short(value), 'PX', string.format('%d', life / 1000 + 1001))
			else
				redis.call('DEL', item.key)
			end
		end
		return held
	end

	return {load = load, mixed = mixed, change_lease = change_lease}
end

-- A thousand leases take a while only to be read. If they hold all places the request is rejected, and that is seen from both ends of
-- the value. It is returned without the records between them; nil: it is not so, or cannot be seen so, since what stands beside them
-- is not as short as the states of most algorithms are.
local function glance(item, full)
	local signature, key, policy = item.signature, item.key, item[full]
	local length = redis.call('STRLEN', key)
	local from, others = #signature + 1, #item - full
	if length < from + 34 * policy.burst - 2 then
		return nil
	end
	local head = redis.call('GETRANGE', key, 0, from + 33 + 51 * (full - 1))
	local tail = redis.call('GETRANGE', key, -34 - 51 * others, -1)
	for _ = 2, full do
		from = (string.find(head, ',', from, true) or #head) + 1
	end
	local to = string.find(tail, string.rep(',[^,]*', others) .. '$') or 0
	local first, last = string.sub(head, from, from + 32), string.sub(tail, to - 33 > 0 and to - 33 or 1, to - 1)
	if string.sub(head, 1, #signature) == signature and
		policy.algorithm.is_full(policy, moment, length - #tail + to - from, first, last) then
		item.is_cut = true
		return string.sub(head, 1, from + 32) .. ';' .. string.sub(tail, to - 33)
	end
end

local items, made, overflowed, rare = {}, {}, 0
local at, k = 4, 1
while at <= #ARGV do
	local n = ARGV[at] + 0
	local item = {key = KEYS[k], value = nil, signature = ARGV[at + 2], shadow = n < 0, admits = true, changed = false}
	local full = 0
	if ARGV[at + 1] == '0' then
		k = k + 1
		item.overflow = KEYS[k]
	end
	k, at = k + 1, at + 3
	for p = 1, n < 0 and -n or n do
		local name, burst = ARGV[at], ARGV[at + 1] + 0
		local algorithm = made[name]
		if not algorithm then
			algorithm = algorithms[name]()
			made[name] = algorithm
		end
		local policy = {algorithm = algorithm, burst = burst, interval = ARGV[at + 2] + 0, shadow = false, used = 0, left_out = 0,
			state = nil, brought = nil, changed = nil, kept = nil, kept_burst = nil}
		if burst < 0 then
			policy.shadow, policy.burst = true, -burst
		end
		at = at + 3
		for m = 1, algorithm.arguments or 0 do
			policy[m] = ARGV[at] + 0
			at = at + 1
		end
		item[p] = policy
		if policy.burst > 50 and algorithm.is_full and not policy.shadow and not item.shadow then
			full = p
		end
	end
	item.value = full > 0 and moment.cost > 0 and glance(item, full) or value_get(item.key, moment.now, moment.past)
	if item.overflow and not item.value and moment.cost > 0 then
		item.key, item.value = item.overflow, value_get(item.overflow, moment.now, moment.past)
		overflowed = overflowed + 2 ^ #items
	end
	items[#items + 1] = item
end

if moment.cost <= 0 then
	local status = 0
	rare = rarely(value_readers, algorithms, moment)
	for _, item in ipairs(items) do
		local held = item.value and rare.change_lease(item)
		if not held and item.overflow then
			item.key, item.value = item.overflow, value_get(item.overflow, moment.now, moment.past)
			held = item.value and rare.change_lease(item)
		end
		status = held and 1 or status
	end
	return {status, moment.now}
end

local admitted, clamped = moment.lease ~= '-1', 0
for i = 1, #items do
	local item = items[i]
	local value, signature = item.value, item.signature
	local from = value and string.sub(value, 1, #signature) == signature and #signature + 1
	for p = 1, #item do
		local policy = item[p]
		local comma = p < #item and from and string.find(value, ',', from, true)
		local text = from and (comma or p == #item) and string.sub(value, from, comma and comma - 1 or -1)
		policy.state = text and policy.algorithm.read(text) or nil
		from = policy.state and (comma or #value) + 1
	end
	if value and not from then
		rare = rare or rarely(value_readers, algorithms, moment)
		rare.load(item)
		item.is_mixed = true
	end
	for p = 1, #item do
		local policy = item[p]
		local algorithm, form = policy.algorithm, policy.form or policy
		local state, was_ahead, is_anew, kept, kept_burst =
			algorithm.bring(policy, moment, policy.state, form.interval, form.burst)
		local used = algorithm.used(policy, moment, state)
		policy.brought, policy.used = state, used
		if was_ahead or is_anew then
			policy.changed, item.changed, clamped = state, true, was_ahead and 2 or clamped
		end
		if kept then
			policy.kept, policy.kept_burst, item.is_mixed = kept, kept_burst, true
		end
		if used + (algorithm.cost or moment.cost) > policy.burst and not policy.shadow then
			item.admits = false
		end
	end
	admitted = admitted and (item.admits or item.shadow)
end

local reply, r = {(admitted and 1 or 0) + clamped, moment.now, overflowed}, 4
for i = 1, #items do
	local item = items[i]
	local states, longest = '', 0
	for p = 1, #item do
		local policy = item[p]
		local algorithm, state, used, burst = policy.algorithm, policy.brought, policy.used, policy.burst
		local cost, wait = algorithm.cost or moment.cost, 0
		local told = used
		if used + cost > burst then
			wait = cost > burst and -1 or algorithm.until_(policy, moment, state, used, burst - cost)
			told = -1 - used
		else
			if admitted and (policy.shadow or item.admits) then
				state, used = algorithm.spend(policy, moment, state), used + cost
				policy.changed, item.changed, told = state, true, used
			end
			wait = used > 0 and algorithm.until_(policy, moment, state, used, used - 1) or 0
		end
		reply[r], reply[r + 1], reply[r + 2] = told, wait, algorithm.until_(policy, moment, state, used, 0)
		r = r + 3
		if not policy.changed then
			item.is_mixed = true
		elseif item.changed and not item.is_mixed then
			local ends = algorithm.worthless_at(moment, state, policy.interval, burst)
			longest = ends - moment.now > longest and ends - moment.now or longest
			states = p == 1 and algorithm.text(state) or states .. ',' .. algorithm.text(state)
		end
	end
	if item.changed then
		local value = item.signature .. states
		if item.is_mixed then
			rare = rare or rarely(value_readers, algorithms, moment)
			item.value = item.is_cut and value_get(item.key, moment.now, moment.past) or item.value
			value, longest = rare.mixed(item)
		end
		redis.call('SET', item.key, value_short(value), 'PX', string.format('%d', longest / 1000 + 1001))
	end
end
return reply
