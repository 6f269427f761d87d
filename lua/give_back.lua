-- What a request has spent, given back. In a Redis Cluster its limits are decided slot by slot, and a later slot may reject it.
-- This file stands behind lua/value.lua, in one script with it. Times are whole microseconds.
--
-- Nothing is given back that could let more pass than if the request had never come: where that cannot be told, it stays spent.
-- A bucket that another configuration has written since is left alone. Leases are given back by lua/engine.lua.
--
-- KEYS    for each limit its bucket, and behind it a key that tells when something was last given back to it, for a minute: no
--         request takes longer (deadline of [redis])
-- ARGV    now       0: this server's clock; else it is now (tests and tools)
--         taken     the time at which it was spent, by the same clock
--         cost      of the request in tokens
--         then for each limit:
--         n         how many policies; 0: it is only looked whether the bucket is there
--         signature of the limit, as of lua/decide.lua
--         then for each policy:
--         algorithm by name
--         until     the time until which something was used, as it was when that was spent; 0: nothing is given back
--
-- Returns {status, now}: status 1 if all buckets are there.

local forms_of, fields_of = value_readers()
local now, taken, cost, past = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, 5e12
if now == 0 then
	local time = redis.call('TIME')
	now, past = time[1] * 1000000 + time[2], 2000000
end

-- By algorithm: the state's new text, '' if nothing is left of it, nil if it stays as it is.
local give_back = {
	-- Had the request not come, the bucket would be full sooner than is stored, by need; but by less if it was full meanwhile when
	-- somebody came, which it can have been from until - need on. So by until - now at the least. That is only so if nothing was
	-- given back since, or `until` would have to be earlier too.
	['token-bucket'] = function(text, interval, until_, burst, last)
		local full_at = #text == 16 and not string.find(text, '%D') and tonumber(text)
		local back = math.min(cost * interval, until_ - now)
		local is_sane = full_at and full_at >= until_ and until_ - now <= interval * burst and last < taken
		if is_sane and back > 0 then
			return string.format('%016d', full_at - back)
		end
	end,

	-- Counts and logs only add up, so what is ours can be taken out as long as it is there.
	['sliding-window'] = function(text, width)
		local index, last, this = string.match(text, '^(%d+)%.(%d+)%.(%d+)$')
		local windows = index and index - math.floor(taken / width)
		if windows == 0 and this + 0 >= cost then
			return string.format('%s.%s.%d', index, last, this - cost)
		elseif windows == 1 and last + 0 >= cost then
			return string.format('%s.%d.%s', index, last - cost, this)
		end
	end,

	['calendar'] = function(text, interval, until_)
		local ends, used = string.match(text, '^(%d+)%.(%d+)$')
		if ends and ends + 0 == until_ and until_ > now and used + 0 >= cost then
			return string.format('%s.%d', ends, used - cost)
		end
	end,

	['sliding-log'] = function(text)
		local parts, found = {}, false
		for time, spent in string.gmatch(text, '(%d+):(%d+)') do
			if not found and time + 0 == taken and spent + 0 >= cost then
				found, spent = true, string.format('%d', spent - cost)
			end
			if spent ~= '0' then
				parts[#parts + 1] = time .. ':' .. spent
			end
		end
		return found and table.concat(parts, ';') or nil
	end,
}

-- Takes out what the policies have spent. True if a field has changed.
local function change(fields, forms, at, last)
	local changed = false
	for p, form in ipairs(forms) do
		local back, until_ = give_back[ARGV[at + 2 * p]], ARGV[at + 2 * p + 1] + 0
		local field = fields[form.tag]
		if back and until_ > 0 and field and field.interval == form.interval then
			local text = back(field.text, field.interval, until_, field.burst, last)
			field.text, changed = text or field.text, changed or text ~= nil
		end
	end
	return changed
end

-- As few bytes as it was, if all fields are still there.
local function store(key, value, fields)
	local signature, states = {}, {}
	for _, field in ipairs(fields) do
		if field.text ~= '' then
			signature[#signature + 1] = string.format('%s:%.0f:%.0f', field.tag, field.interval, field.burst)
			states[#states + 1] = field.text
		end
	end
	local head = string.match(value, '^[%x: ]+=') or string.sub(value, 1, -17)
	if #states < #forms_of(head) then
		head = table.concat(signature, ' ') .. '='
	end
	if #states == 0 then
		redis.call('DEL', key)
	else
		redis.call('SET', key, value_short(head .. table.concat(states, ',')), 'KEEPTTL')
	end
end

-- Never, or now if that is no time.
local function last_time(key)
	local text = redis.call('GET', key)
	return text and (tonumber(text) or now) or 0
end

local status, at = 1, 4
for k = 1, #KEYS, 2 do
	local key, n = KEYS[k], ARGV[at] + 0
	local value = value_get(key, now, past)
	if not value then
		status = 0
	elseif n > 0 then
		local fields = fields_of(value)
		if change(fields, forms_of(ARGV[at + 1]), at, last_time(KEYS[k + 1])) then
			store(key, value, fields)
			redis.call('SET', KEYS[k + 1], string.format('%d', now), 'PX', 60000)
		end
	end
	at = at + 2 + 2 * n
end
return {status, now}
