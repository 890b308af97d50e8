import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DEFAULT_FIRST_MACHINE_UID,
  findUserCollision,
  planMachineUsers,
  requireMachineUsers,
} from '../../../noded/host/machine-users.ts';

const users = planMachineUsers(DEFAULT_FIRST_MACHINE_UID);
const everyNumber = '         0          0 4294967295\n';

const collision = (files: Readonly<Record<string, string>>): string | undefined =>
  findUserCollision(users, (path) => ({ '/proc/self/uid_map': everyNumber, ...files })[path] ?? '');

test('there is one uid for each of 2^22 process ids, below 2^31', () => {
  assert.equal(users.last - users.first + 1, 2 ** 22);
  for (const first of [0, 1000, 65_535, 2 ** 31 - 2 ** 22 + 1, 2 ** 32, 1.5, NaN])
    assert.throws(() => planMachineUsers(first), RangeError, String(first));
  assert.equal(planMachineUsers(2 ** 31 - 2 ** 22).last, 2 ** 31 - 1);
});

test('a uid range with an assigned number is refused with the name of its user', () => {
  const common = 'root:x:0:0:root:/root:/bin/bash\n';
  assert.equal(collision({ '/etc/passwd': common, '/etc/subuid': 'a:100000:65536\n' }), undefined);
  for (const [path, line] of [
    ['/etc/passwd', `eve:x:${users.first}:100::/:/bin/sh`],
    ['/etc/group', `eve:x:${users.last}:`],
    ['/etc/subuid', `eve:${users.first - 1}:2`],
    ['/etc/subgid', `eve:65536:4294901759`],
  ] as const) {
    assert.match(
      collision({ [path]: `${common}${line}\n` }) ?? '',
      /^\/etc\/\w+ assigns .* to eve$/,
    );
  }
  assert.equal(collision({ '/etc/subuid': `eve:${users.last + 1}:65536\n` }), undefined);
});

test('a container that does not map the uid range is refused', () => {
  const map = '         0     100000      65536\n';
  assert.match(collision({ '/proc/self/uid_map': map }) ?? '', /container/);
});

test('the uid range is free on this host', () => {
  requireMachineUsers(users);
});
