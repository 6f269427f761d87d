-- A bucket's value as lua/decide.lua describes it, SIGNATURE STATE[,STATE]..., whoever wrote it. Two functions.

local function value_readers()
	-- The policy that a code stands for.
	local function of_code(code)
		local windows = {{'6a88d96d', 1}, {'96549538', 60}, {'7343d903', 3600}, {'6bc16cfa', 86400}}
		local window = windows[math.ceil(code / 230)]
		local count = (code - 1) % 230 + 1
		if count >= 190 then
			count = 1000 + 100 * (count - 190)
		elseif count >= 100 then
			count = 100 + 10 * (count - 100)
		end
		return window and {tag = window[1], interval = math.ceil(window[2] * 1000000 / count), burst = count}
	end

	-- A signature's forms in order: {tag, interval, burst} each.
	local function forms_of(signature)
		local list = {}
		if string.find(signature, '^%d+$') then
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
		if not signature and #value > 16 and #value < 20 and not string.find(value, '%D') then
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
