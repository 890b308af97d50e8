/**
 * Least number of entries of a long log of changes. A watcher that was away for longer reads all
 * records again.
 */
const LOGGED_CHANGES = 10_000;

/**
 * Applies all writes or none, on the server. All checks come before the first write of a record:
 * Redis does not roll back a failed script.
 *
 * KEYS[1]: schema version; then three for each write: the hash, the log of its changes, and the
 * collection's floor: the newest stamp of its writes, the highest revision of deleted records.
 *
 * ARGV[1]: schema of the writer; then five per write: id, expected revision | absent | any, 1 to
 * write or 0 to delete, JSON, its stamp or 0 for none.
 *
 * Answers {done, revision…}, {conflict, index of the write}, {schema, version}, {broken, key that
 * holds another kind of value} or {behind, index of the write, newest stamp}. The last one refuses
 * a writer that has not seen the previous record, and may have taken its stamp before that record
 * was made.
 *
 * The id of each changed record is added to the log, and published under the hash's name. The
 * latter notifies nodes of the release before the logs and must stay until none is left. A user
 * without permission to publish can still commit, hence the pcall. Values are never decoded: Lua's
 * numbers and empty tables would change them.
 */
export const COMMIT_SCRIPT = `
-- Returns the refusal of an error before the first write; false without an error.
local function refusal(answer, key)
  if type(answer) ~= 'table' or not answer.err then return false end
  local isBroken = string.find(answer.err, 'WRONGTYPE') or string.find(answer.err, 'exhausted')
  return isBroken and {'broken', key} or answer
end
-- Lua writes numbers of more digits as powers of ten.
local function countOf(digits)
  return digits and #digits <= 14 and tonumber(digits)
end
local schema = redis.pcall('GET', KEYS[1])
local refused = refusal(schema, KEYS[1])
if refused then return refused end
if schema and tonumber(schema) ~= tonumber(ARGV[1]) then
  return {'schema', string.sub(schema, 1, 32)}
end
local revisions, stamps = {}, {}
local count = (#KEYS - 1) / 3
for i = 1, count do
  local at = 2 + (i - 1) * 5
  local id, expected, stamp = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 4])
  local current = redis.pcall('HGET', KEYS[3 * i - 1], id)
  refused = refusal(current, KEYS[3 * i - 1])
  if refused then return refused end
  local revision = current and countOf(string.match(current, '^([1-9]%d*)\\n')) or 0
  if current and revision == 0 and expected ~= 'any' then return {'broken', KEYS[3 * i - 1]} end
  local holds = expected == 'any'
    or (expected == 'absent' and revision == 0)
    or (expected ~= 'absent' and revision > 0 and tonumber(expected) == revision)
  if not holds then
    -- A write, so that WAIT covers the record that caused the conflict.
    if schema then redis.call('SET', KEYS[1], schema) end
    return {'conflict', i}
  end
  local floor = stamp > 0 and redis.pcall('HMGET', KEYS[3 * i + 1], 'stamp', 'revision') or {}
  refused = refusal(floor, KEYS[3 * i + 1])
  if refused then return refused end
  local newest = tonumber(floor[1] or 0) or 0
  local deleted = floor[2] and countOf(string.match(floor[2], '^%d+$')) or 0
  -- A writer that names a revision has read that record, and its stamp.
  if ARGV[at + 2] == '1' and tonumber(expected) == nil and stamp <= newest and stamp > 0 then
    return {'behind', i, tostring(floor[1])}
  end
  -- A new record starts above a deleted one: a revision never names two records.
  revisions[i] = (revision > 0 and revision or deleted) + 1
  stamps[i] = stamp > newest and ARGV[at + 4]
end
-- A surplus entry does no harm; a record without an entry would never be reported.
for i = 1, count do
  local noted = redis.pcall('XADD', KEYS[3 * i], 'MAXLEN', '~', ${LOGGED_CHANGES}, '*', 'id', ARGV[2 + (i - 1) * 5])
  refused = refusal(noted, KEYS[3 * i])
  if refused then return refused end
end
local answer = {'done'}
for i = 1, count do
  local at = 2 + (i - 1) * 5
  if ARGV[at + 2] == '1' then
    redis.call('HSET', KEYS[3 * i - 1], ARGV[at], string.format('%.0f\\n', revisions[i]) .. ARGV[at + 3])
    answer[i + 1] = revisions[i]
  else
    redis.call('HDEL', KEYS[3 * i - 1], ARGV[at])
    if ARGV[at + 4] ~= '0' then
      local deleted = redis.call('HGET', KEYS[3 * i + 1], 'revision')
      if revisions[i] > (deleted and countOf(string.match(deleted, '^%d+$')) or 0) then
        redis.call('HSET', KEYS[3 * i + 1], 'revision', revisions[i])
      end
    end
    answer[i + 1] = 0
  end
  if stamps[i] then redis.call('HSET', KEYS[3 * i + 1], 'stamp', stamps[i]) end
  redis.pcall('PUBLISH', KEYS[3 * i - 1], ARGV[at])
end
return answer
`;
