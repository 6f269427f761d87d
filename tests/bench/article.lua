-- The token bucket that weir is measured against: the published script's way of working (a hash of tokens and time, refilled by the
-- elapsed time, HMGET, HSET, EXPIRE), written anew.
local rate, capacity, now, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local stored = redis.call('HMGET', KEYS[1], 'tokens', 'ts')
local tokens, at = tonumber(stored[1]), tonumber(stored[2])
if not tokens then
	tokens, at = capacity, now
end
tokens = math.min(capacity, tokens + math.max(0, now - at) / 1e9 * rate)
local admitted, retry = 0, 0
if tokens >= wanted then
	tokens, admitted = tokens - wanted, 1
else
	retry = math.ceil((wanted - tokens) / rate * 1000)
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'ts', now)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 60)
return {admitted, tostring(tokens), tostring(retry)}
