import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_FIRST_POWERLESS_UID, planSandbox } from '#shared/sandbox/plan-sandbox.ts';
import { run } from '#shared/process/run.ts';

test('a program without power has a user of its own, no group, no capability, no network and no way back', async () => {
  const script =
    'id -u; echo $$; id -G; grep -E "^(CapPrm|CapBnd|NoNewPrivs)" /proc/self/status | cut -f2; grep -vc lo: /proc/net/dev; cat /etc/shadow || echo refused';
  const [command, ...args] = planSandbox({
    command: ['/bin/sh', '-c', script],
    firstUid: DEFAULT_FIRST_POWERLESS_UID,
    ...{ group: null, hasHostNetwork: false },
  });
  const { stdout } = await run(command, args);
  const [uid, pid, groups, ...rest] = stdout.trim().split('\n');
  assert.equal(Number(uid), DEFAULT_FIRST_POWERLESS_UID + Number(pid));
  assert.equal(groups, uid);
  // Only the two head lines of /proc/net/dev remain.
  assert.deepEqual(rest, ['0000000000000000', '0000000000000000', '1', '2', 'refused']);
});
