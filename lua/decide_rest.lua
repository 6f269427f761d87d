-- Between lua/decide.lua, which has left a check to it, and lua/engine.lua: the arguments of the one, said as the other takes them.

local function engine_arguments(arguments, keys)
	local forms_of = value_readers()
	local list, cost, most, at = {arguments[1], '', '0'}, nil, 0, 2
	local function add(a, b, c)
		local count = #list
		list[count + 1], list[count + 2], list[count + 3] = a, b, c
	end
	for _ = 1, keys do
		local n = 1
		if #arguments ~= 4 then
			n, at = arguments[at] + 0, at + 1
		end
		add(n, '1', arguments[at])
		for p, form in ipairs(forms_of(arguments[at])) do
			local need, capacity = arguments[at + 2 * p - 1] + 0, arguments[at + 2 * p] + 0
			add('token-bucket', form.burst, form.interval)
			-- A cost above the burst is said as more than the bucket holds, and how much more is not known.
			most = math.max(most, form.burst)
			if need <= capacity then
				cost = need / form.interval
			end
		end
		at = at + 1 + 2 * math.abs(n)
	end
	list[2] = cost or most + 1
	return list
end

local ARGV = engine_arguments(ARGV, #KEYS)
