import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineIsolation } from '../../../../noded/operations/doctor/examine-isolation.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';

const machineUsers = planMachineUsers(DEFAULT_FIRST_MACHINE_UID);
const good = {
  '/proc/self/uid_map': '0 0 4294967295\n',
  '/proc/sys/kernel/yama/ptrace_scope': '1\n',
};

function levels(files: Readonly<Record<string, string | undefined>>, userNicsReachHost = false) {
  const read = (path: string): string | undefined => ({ ...good, ...files })[path];
  const findings = examineIsolation({ machineUsers, userNicsReachHost, read });
  for (const { level, hint } of findings) assert.equal(level === 'ok', hint === null);
  return Object.fromEntries(findings.map(({ check, level }) => [check, level]));
}

test('a host that keeps machines apart is well', () => {
  assert.deepEqual(new Set(Object.values(levels({}))), new Set(['ok']));
});

test('what would let machines at each other or at the host is told', () => {
  const taken = { '/etc/passwd': `eve:x:${machineUsers.first}:1::/:/bin/sh\n` };
  assert.equal(levels(taken)['machine-users'], 'error');
  assert.equal(levels({}, true)['user-nics'], 'warning');
  const scope = '/proc/sys/kernel/yama/ptrace_scope';
  assert.equal(levels({ [scope]: '0\n' })['ptrace'], 'warning');
  assert.equal(levels({ [scope]: undefined })['ptrace'], 'warning');
  assert.equal(levels({ [scope]: '2\n' })['ptrace'], 'ok');
  for (const name of ['protected_hardlinks', 'protected_symlinks']) {
    assert.equal(levels({ [`/proc/sys/fs/${name}`]: '0\n' })['links'], 'warning');
    assert.equal(levels({ [`/proc/sys/fs/${name}`]: '1\n' })['links'], 'ok');
  }
});
