-- Takes units from every window, or from none of them; all keys bear one hash tag, so they are on one cluster node.
-- KEYS: one for each counted window. ARGV: units (below zero: put back), the second that it is now ('' for this
-- server's own time), then for each key the length of its window in seconds and its limit.
-- A value is "<number of the window>:<used>"; the expiry only tidies up.
local units = tonumber(ARGV[1])
local now = tonumber(ARGV[2]) or tonumber(redis.call('TIME')[1])
local stored = redis.call('MGET', unpack(KEYS))
local numbers, used, admitted = {}, {}, 1
for i = 1, #KEYS do
  numbers[i] = math.floor(now / tonumber(ARGV[1 + 2 * i]))
  used[i] = 0
  if stored[i] then
    local number, count = string.match(stored[i], '^(%d+):(%d+)$')
    -- A clock that went back, as after a failover, finds the window that ran before it did.
    if number and tonumber(number) >= numbers[i] then
      numbers[i] = tonumber(number)
      used[i] = tonumber(count)
    end
  end
  if units > 0 and used[i] + units > tonumber(ARGV[2 + 2 * i]) then admitted = 0 end
end
if admitted == 1 and units ~= 0 then
  for i, key in ipairs(KEYS) do
    used[i] = math.max(0, used[i] + units)
    local value = string.format('%.0f:%.0f', numbers[i], used[i])
    redis.call('SET', key, value, 'EX', string.format('%.0f', 2 * tonumber(ARGV[1 + 2 * i])))
  end
end
return {admitted, now, unpack(used)}
