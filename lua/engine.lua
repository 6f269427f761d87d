-- All limits of one request with policies of any algorithm, decided at once, as lua/decide.lua does for token buckets alone.
-- src/limit/decide.c is the same in C. This file stands behind those of lua/algorithms and lua/value.lua, in one script with them.
-- Times are whole microseconds.
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
--                                                    and true if a clock that was set back had left it too far in the future
--   used(policy, moment, state)                      tokens, of a state that was brought
--   until_(policy, moment, state, used, allowed)     the wait until at most so many of them are used
--   spend(policy, moment, state)                     the state after the request
--   worthless_at(moment, state, interval, burst)     from when on a state, of any form and not brought, says nothing
--   cost                                             in place of the request's
--   arguments                                        how many more numbers a policy has; it finds them as policy[1] and so on
--   is_held(moment, state)                           of leases: whether this one is. Bring leaves it out, spend takes it anew
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

local moment = {now = -ARGV[1], cost = ARGV[2] + 0, lease = ARGV[3]}
if moment.now <= 0 then
	local time, expires = redis.call('TIME'), -moment.now
	moment.now = time[1] * 1000000 + time[2]
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

	-- The value with what has changed, in our form, and all else as it is while it says something; and for how long it does. Beyond 16
	-- fields others' give way.
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
		local strangers = #fields
		for p, policy in ipairs(item) do
			local form = forms[p]
			local field = fields[form.tag]
			if policy.changed then
				add_own(form, policy, policy.changed, policy.algorithm.text(policy.changed))
			elseif policy.state then
				add_own(field, policy, policy.state, field.text)
			end
			if field then
				field.is_own, strangers = true, strangers - 1
			end
		end
		for _, field in ipairs(fields) do
			if not field.is_own then
				if strangers + #item <= 16 then
					add(field, field.text, life_of(field))
				else
					strangers = strangers - 1
				end
			end
		end
		if #states == 1 and #item == 1 and item[1].changed then
			return item.signature .. states[1], longest
		end
		return #states > 0 and table.concat(signature, ' ') .. '=' .. table.concat(states, ','),
			math.min(longest, 2 * 3155760000000000)
	end

	-- Whether the lease was held under the item's key; then it is given back, or prolonged.
	local function change_lease(item)
		local held = false
		load(item)
		for _, policy in ipairs(item) do
			local algorithm, state = policy.algorithm, policy.state
			if state and algorithm.is_held and algorithm.is_held(moment, state) then
				held, policy.changed = true, algorithm.bring(policy, moment, state)
				if moment.cost < 0 then
					policy.changed = algorithm.spend(policy, moment, policy.changed)
				end
			end
		end
		if held then
			local value, life = mixed(item)
			if value then
				redis.call('SET', item.key, value, 'PX', string.format('%d', life / 1000 + 1001))
			else
				redis.call('DEL', item.key)
			end
		end
		return held
	end

	return {load = load, mixed = mixed, change_lease = change_lease}
end

local items, made, overflowed, rare = {}, {}, 0
local at, k = 4, 1
while at <= #ARGV do
	local n = ARGV[at] + 0
	local item = {key = KEYS[k], value = redis.call('GET', KEYS[k]), signature = ARGV[at + 2], shadow = n < 0, admits = true,
		changed = false}
	if ARGV[at + 1] == '0' then
		k = k + 1
		item.overflow = KEYS[k]
		if not item.value and moment.cost > 0 then
			item.key, item.value = KEYS[k], redis.call('GET', KEYS[k])
			overflowed = overflowed + 2 ^ #items
		end
	end
	k, at = k + 1, at + 3
	for p = 1, n < 0 and -n or n do
		local name, burst = ARGV[at], ARGV[at + 1] + 0
		local algorithm = made[name]
		if not algorithm then
			algorithm = algorithms[name]()
			made[name] = algorithm
		end
		local policy = {algorithm = algorithm, burst = burst, interval = ARGV[at + 2] + 0, shadow = false, used = 0,
			state = nil, brought = nil, changed = nil}
		if burst < 0 then
			policy.shadow, policy.burst = true, -burst
		end
		at = at + 3
		for m = 1, algorithm.arguments or 0 do
			policy[m] = ARGV[at] + 0
			at = at + 1
		end
		item[p] = policy
	end
	items[#items + 1] = item
end

if moment.cost <= 0 then
	local status = 0
	rare = rarely(value_readers, algorithms, moment)
	for _, item in ipairs(items) do
		local held = item.value and rare.change_lease(item)
		if not held and item.overflow then
			item.key, item.value = item.overflow, redis.call('GET', item.overflow)
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
		local state, was_ahead = algorithm.bring(policy, moment, policy.state, form.interval, form.burst)
		local used = algorithm.used(policy, moment, state)
		policy.brought, policy.used = state, used
		if was_ahead then
			policy.changed, item.changed, clamped = state, true, 2
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
			value, longest = rare.mixed(item)
		end
		redis.call('SET', item.key, value, 'PX', string.format('%d', longest / 1000 + 1001))
	end
end
return reply
