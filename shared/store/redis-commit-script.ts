/**
 * Entries that a log of changes has at least, once it has had so many: who was away for longer reads
 * all records again.
 */
const LOGGED_CHANGES = 10_000;

/**
 * All writes or none, on the server.
 * KEYS[1] schema version; then two for each write: the hash, and the log of its changes.
 * ARGV[1] schema of the writer; then four per write: id, expected revision | absent | any, 1 to
 * write or 0 to delete, JSON. Answers {done, revision…}, {conflict, index of the write} or {schema,
 * version}. The id of each record that was written or deleted is put into the log, and published
 * under the hash's name: nodes of the release before the logs hear of it in no other way, so this is
 * to stay until none of them is left. Who may not publish commits all the same, hence the pcall.
 * Values are never decoded: Lua's numbers and empty tables would change them.
 */
export const COMMIT_SCRIPT = `
local schema = redis.call('GET', KEYS[1])
if schema and tonumber(schema) ~= tonumber(ARGV[1]) then return {'schema', schema} end
local revisions = {}
local count = (#KEYS - 1) / 2
for i = 1, count do
  local at = 2 + (i - 1) * 4
  local id, expected = ARGV[at], ARGV[at + 1]
  local current = redis.call('HGET', KEYS[2 * i], id)
  local revision = current and tonumber(string.match(current, '^(%d+)\\n')) or 0
  local holds = expected == 'any'
    or (expected == 'absent' and revision == 0)
    or (expected ~= 'absent' and revision > 0 and tonumber(expected) == revision)
  if not holds then
    -- A write, so that who waits for replicas waits for what it conflicts with.
    if schema then redis.call('SET', KEYS[1], schema) end
    return {'conflict', i}
  end
  revisions[i] = revision + 1
end
local answer = {'done'}
for i = 1, count do
  local at = 2 + (i - 1) * 4
  if ARGV[at + 2] == '1' then
    redis.call('HSET', KEYS[2 * i], ARGV[at], revisions[i] .. '\\n' .. ARGV[at + 3])
    answer[i + 1] = revisions[i]
  else
    redis.call('HDEL', KEYS[2 * i], ARGV[at])
    answer[i + 1] = 0
  end
  redis.call('XADD', KEYS[2 * i + 1], 'MAXLEN', '~', ${LOGGED_CHANGES}, '*', 'id', ARGV[at])
  redis.pcall('PUBLISH', KEYS[2 * i], ARGV[at])
end
return answer
`;
