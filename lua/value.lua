-- A bucket's value as lua/decide.lua describes it, SIGNATURE STATE[,STATE]..., whoever wrote it.

-- With a code in front, the time has all its 16 digits here, and only the last 13 of them in what is stored. Those are of a time
-- that is later than so much past.
local function value_get(key, now, past)
	local value = redis.call('GET', key)
	if value and #value > 13 and #value < 21 and string.find(value, '^%-?[1-9]%d+$') then
		local ahead = (string.sub(value, -13) - now + past) % 1e13 - past
		return string.format('%s%016d', string.sub(value, 1, -14), now + ahead)
	end
	return value
end

local function value_short(value)
	if string.find(value, '=', 1, true) then
		return value
	end
	return string.sub(value, 1, -17) .. string.sub(value, -13)
end

-- Functions that read values. Few checks need them.
local function value_readers()
	-- What codes are made of, as in src/limit/form.c: windows by the tags of policies that are called so, with their seconds; and
	-- runs of counts and bursts, each {how many, first, step}.
	local windows = {
		'6a88d96d', 1, '33c76c4e', 2, 'd70d813d', 3, '49721eeb', 4, '823e1770', 5, 'f40347da', 6, '1282628a', 7,
		'951f1f96', 8, '801d83c8', 9, '82b4afef', 10, '7efa00e4', 12, '04e3c184', 15, '3b00bc79', 20, '295138e6', 30,
		'71c55c7e', 60, '96549538', 60, '04166977', 120, 'bbc7951f', 180, '39ac85b9', 240, 'b7bea3d2', 300, '76db541e', 360,
		'8797d14c', 600, '1daf623d', 900, '890e625e', 1200, '6abd18a4', 1800, '95ae53c0', 3600, '7343d903', 3600,
		'd0fdc025', 7200, 'df8935fd', 10800, 'a90840a2', 14400, 'f9c7cb3d', 21600, '50d735a7', 28800, '7ba1f14e', 43200,
		'ceed675a', 86400, '6bc16cfa', 86400, '0977ad46', 172800, '8ee31d1a', 259200, '641a4f1e', 604800, 'c1bbf8dd', 1209600,
		'df06d013', 2592000,
	}
	local runs = {{99, 1, 1}, {41, 100, 10}, {9, 550, 50}, {40, 1000, 100}, {10, 5000, 500}, {15, 10000, 10000}}
	local amounts, longest = 214, 31 * 86400000000

	local function amount_of(index)
		for _, run in ipairs(runs) do
			if index < run[1] then
				return run[2] + index * run[3]
			end
			index = index - run[1]
		end
	end

	-- The form that a code stands for: negative codes are for the second half of the windows.
	local function of_code(code)
		local half, index = #windows / 4, math.abs(code) - 1
		local window = math.floor(index / (amounts * amounts))
		if window >= half or code == 0 then
			return nil
		elseif code < 0 then
			window = window + half
		end
		local count, burst = amount_of(math.floor(index / amounts) % amounts), amount_of(index % amounts)
		local interval = math.ceil(windows[2 * window + 2] * 1000000 / count)
		return interval * burst <= longest and {tag = windows[2 * window + 1], interval = interval, burst = burst} or nil
	end

	-- A signature's forms in order: {tag, interval, burst} each.
	local function forms_of(signature)
		local list = {}
		if string.find(signature, '^%-?%d+$') then
			list[1] = of_code(tonumber(signature))
		else
			for tag, interval, burst in string.gmatch(signature, '(%x+):(%d+):(%d+)') do
				list[#list + 1] = {tag = tag, interval = tonumber(interval), burst = tonumber(burst)}
			end
		end
		return list
	end

	-- A value's fields: a list of forms with their texts, which are also found by their tags.
	local function fields_of(value)
		local fields = {}
		local signature, states = string.match(value, '^([%x: ]+=)(.*)$')
		if not signature and #value > 16 and #value < 24 and string.find(value, '^%-?%d+$') then
			signature, states = string.sub(value, 1, -17), string.sub(value, -16)
		end
		if signature then
			local next_state = string.gmatch(states, '[^,]+')
			for _, field in ipairs(forms_of(signature)) do
				field.text = next_state()
				if field.text and field.interval > 0 and field.interval * field.burst <= 3155760000000000
					and not fields[field.tag] then
					fields[#fields + 1] = field
					fields[field.tag] = field
				end
			end
		end
		return fields
	end

	return forms_of, fields_of
end
