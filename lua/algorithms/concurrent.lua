-- Concurrent requests: each holds a lease that it gives back when it ends, or that ends by itself. State and text:
-- LEASE-END;LEASE-END... of 16 digits each, those that end first in front.
--
-- There may be a thousand of them, and a flood that is rejected asks as often as it likes. So none is looked at that need not be:
-- the length says how many there are, the first and the last when they end, and what is between is searched by halves. If all places
-- are taken, not even that is read: of such a state some records may be left out in the middle, policy.left_out of them.

-- Records of a state's text. Each is 34 characters with what stands behind it.
local function lease_records()
	-- When the n-th ends; 0 if there is none.
	local function end_of(text, n)
		return tonumber(string.sub(text, 34 * n - 16, 34 * n - 1)) or 0
	end

	-- How many of them end at that time or before.
	local function count_until(text, time)
		local low, high = 0, (#text + 1) / 34
		while low < high do
			local middle = math.ceil((low + high) / 2)
			if end_of(text, middle) <= time then
				low = middle
			else
				high = middle - 1
			end
		end
		return low
	end

	-- Those from one to another.
	local function part(text, from, to)
		return from <= to and string.sub(text, 34 * from - 33, 34 * to - 1) or ''
	end

	local function joined(...)
		local parts = {}
		for _, text in ipairs({...}) do
			parts[#parts + 1] = text ~= '' and text or nil
		end
		return table.concat(parts, ';')
	end

	-- Where that lease is among them; nil if it is not.
	local function find(text, lease)
		local holder = string.format('%016d-', lease)
		if string.sub(text, 1, 17) == holder then
			return 1
		end
		local at = string.find(text, ';' .. holder, 1, true)
		return at and at / 34 + 1
	end

	local function without(text, n)
		return joined(part(text, 1, n - 1), part(text, n + 1, (#text + 1) / 34))
	end

	return {end_of = end_of, count_until = count_until, part = part, joined = joined, find = find, without = without}
end

local function concurrent()
	local records

	local function edit()
		records = records or lease_records()
		return records
	end

	-- When the first or the last ends; 0 if there is none.
	local function first_end(text)
		return tonumber(string.sub(text, 18, 33)) or 0
	end
	local function last_end(text)
		return tonumber(string.sub(text, -16)) or 0
	end

	-- What lies between the first and the last is not looked at. If it is damaged, counts are lost, and nothing else.
	local function read(text)
		local ends = string.sub(text, 1, 33) .. string.sub(text, -33)
		return #text % 34 == 33 and #text < 34 * 1000 and string.find(ends, '^%d+%-%d+%-%d+$')
			and string.sub(ends, 17, 17) == '-' and string.sub(ends, 50, 50) == '-' and text
	end

	return {
		cost = 1,

		read = read,

		text = function(text)
			return text
		end,

		-- If there is room, the asker's own lease is left out: spending puts it in anew, so that it never counts twice. A lease that was
		-- taken for longer than ours is held by a request that will renew it in time for that. So it is not cut short, and as long as
		-- there is one the state keeps the longer form.
		bring = function(policy, moment, text, interval)
			local now, own = moment.now, policy.interval
			if not text then
				return ''
			end
			if first_end(text) <= now then
				text = edit().part(text, edit().count_until(text, now) + 1, (#text + 1) / 34)
			end
			if (#text + 1) / 34 + policy.left_out < policy.burst then
				local at = edit().find(text, moment.lease)
				text = at and edit().without(text, at) or text
			end
			local longest = interval > own and interval or own
			local last = last_end(text)
			local was_ahead = last > now + longest + 1000000
			if was_ahead then
				last = now + longest
				local sound = edit().count_until(text, last)
				local ahead = string.gsub(edit().part(text, sound + 1, (#text + 1) / 34), '%-%d+', string.format('-%016d', last))
				text = edit().joined(edit().part(text, 1, sound), ahead)
			end
			return text, was_ahead, false, last > now + own and longest > own and longest or nil
		end,

		used = function(policy, moment, text)
			return math.floor((#text + 1) / 34) + policy.left_out
		end,

		-- Nobody knows when a request ends.
		until_ = function(policy, moment, text, used, allowed)
			return used <= allowed and 0 or 1000000
		end,

		spend = function(policy, moment, text)
			local time, count = moment.now + policy.interval, math.floor((#text + 1) / 34)
			local own = string.format('%016d-%016d', moment.lease, time)
			if count == 0 then
				return own
			elseif last_end(text) <= time then
				return text .. ';' .. own
			end
			local before = edit().count_until(text, time)
			return edit().joined(edit().part(text, 1, before), own, edit().part(text, before + 1, count))
		end,

		worthless_at = function(moment, text)
			return last_end(text)
		end,

		is_full = function(policy, moment, length, first, last)
			local count, now = (length + 1) / 34, moment.now
			if count >= policy.burst and count % 1 == 0 and count <= 1000 and first_end(first) > now
				and last_end(last) <= now + policy.interval + 1000000 and read(first .. ';' .. last) then
				policy.left_out = count - 2
				return true
			end
		end,

		give_back = function(moment, text)
			local at = edit().find(text, moment.lease)
			return at and edit().end_of(text, at) > moment.now and edit().without(text, at)
		end,
	}
end
