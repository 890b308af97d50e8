/**
 * Entries that a log of changes has at least, once it has had so many: who was away for longer
 * reads all records again.
 */
const LOGGED_CHANGES = 10_000;

/**
 * All writes or none, on the server. KEYS[1] schema version; then three for each write: the hash,
 * the log of its changes, and the collection's floor: the newest stamp of its writes, the highest
 * revision of what was deleted. ARGV[1] schema of the writer; then five per write: id, expected
 * revision | absent | any, 1 to write or 0 to delete, JSON, its stamp or 0 for none. Answers {done,
 * revision…}, {conflict, index of the write}, {schema, version} or {behind, index of the write,
 * newest stamp}: a writer that has not seen the record before this one may have taken its stamp
 * before that was made. The id of each record that was written or deleted is put into the log, and
 * published under the hash's name: nodes of the release before the logs hear of it in no other way,
 * so this is to stay until none of them is left. Who may not publish commits all the same, hence
 * the pcall. Values are never decoded: Lua's numbers and empty tables would change them.
 */
export const COMMIT_SCRIPT = `
local schema = redis.call('GET', KEYS[1])
if schema and tonumber(schema) ~= tonumber(ARGV[1]) then return {'schema', schema} end
local revisions, stamps = {}, {}
local count = (#KEYS - 1) / 3
for i = 1, count do
  local at = 2 + (i - 1) * 5
  local id, expected, stamp = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 4])
  local current = redis.call('HGET', KEYS[3 * i - 1], id)
  local revision = current and tonumber(string.match(current, '^(%d+)\\n')) or 0
  local holds = expected == 'any'
    or (expected == 'absent' and revision == 0)
    or (expected ~= 'absent' and revision > 0 and tonumber(expected) == revision)
  if not holds then
    -- A write, so that who waits for replicas waits for what it conflicts with.
    if schema then redis.call('SET', KEYS[1], schema) end
    return {'conflict', i}
  end
  local floor = stamp > 0 and redis.call('HMGET', KEYS[3 * i + 1], 'stamp', 'revision') or {}
  local newest, deleted = tonumber(floor[1] or 0) or 0, tonumber(floor[2] or 0) or 0
  -- Who names a revision has read that record, and its stamp.
  if ARGV[at + 2] == '1' and tonumber(expected) == nil and stamp <= newest and stamp > 0 then
    return {'behind', i, tostring(floor[1])}
  end
  -- What is made anew goes on above what was deleted: a revision never names two records.
  revisions[i] = (revision > 0 and revision or deleted) + 1
  stamps[i] = stamp > newest and ARGV[at + 4]
end
local answer = {'done'}
for i = 1, count do
  local at = 2 + (i - 1) * 5
  if ARGV[at + 2] == '1' then
    redis.call('HSET', KEYS[3 * i - 1], ARGV[at], revisions[i] .. '\\n' .. ARGV[at + 3])
    answer[i + 1] = revisions[i]
  else
    redis.call('HDEL', KEYS[3 * i - 1], ARGV[at])
    if ARGV[at + 4] ~= '0' then
      local deleted = redis.call('HGET', KEYS[3 * i + 1], 'revision')
      if revisions[i] > (tonumber(deleted or 0) or 0) then
        redis.call('HSET', KEYS[3 * i + 1], 'revision', revisions[i])
      end
    end
    answer[i + 1] = 0
  end
  if stamps[i] then redis.call('HSET', KEYS[3 * i + 1], 'stamp', stamps[i]) end
  redis.call('XADD', KEYS[3 * i], 'MAXLEN', '~', ${LOGGED_CHANGES}, '*', 'id', ARGV[at])
  redis.pcall('PUBLISH', KEYS[3 * i - 1], ARGV[at])
end
return answer
`;
