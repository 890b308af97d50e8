import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { examineSecrecy } from '../../../../noded/operations/doctor/examine-secrecy.ts';
import {
  isSafeDevice,
  leavesCore,
  maySwap,
  parseSwaps,
  type SecrecyFacts,
} from '../../../../noded/operations/doctor/secrecy-facts.ts';

const open = { name: '/dev/sda2', isSafe: false };
const safe = { name: '/dev/dm-1', isSafe: true };

function levels(facts: Partial<SecrecyFacts>): readonly string[] {
  const none = { swaps: [], swappable: ['gnt-noded'], corePattern: 'core\n', dumpable: [] };
  const findings = examineSecrecy({ ...none, ...facts });
  return findings.map(({ check, level }) => `${check} ${level}`);
}

test('swap that is not encrypted is told, unless nothing of ours gets there', () => {
  for (const facts of [{}, { swaps: [safe] }, { swaps: [open, safe], swappable: [] }])
    assert.deepEqual(levels(facts), ['swap ok', 'core-dumps ok']);
  assert.deepEqual(levels({ swaps: [safe, open] }), ['swap warning', 'core-dumps ok']);
});

test('a daemon that would leave a core is told, whether to a file or to a program', () => {
  for (const corePattern of ['core\n', '|/usr/lib/systemd/systemd-coredump %P\n'])
    assert.deepEqual(levels({ corePattern, dumpable: ['gnt-metad'] }), [
      ...['swap ok', 'core-dumps warning'],
    ]);
});

test('swaps are named as the kernel has them', () => {
  const text =
    'Filename\t\t\t\tType\t\tSize\n/dev/dm-1                               partition\t1\t0\t-2\n/swap\\040file file 1 0 -3\n';
  assert.deepEqual(parseSwaps(text), ['/dev/dm-1', '/swap file']);
  assert.deepEqual(parseSwaps(readFileSync('/proc/swaps', 'utf8')).includes('Filename'), false);
});

test('a bound of the group, or of one above it, keeps a process out of swap', () => {
  const root = mkdtempSync(join(tmpdir(), 'gnt-cgroup-'));
  try {
    const own = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    assert.equal(maySwap(process.pid, root), true);
    if (own === undefined) return;
    mkdirSync(join(root, own), { recursive: true });
    writeFileSync(join(root, own, 'memory.swap.max'), 'max\n');
    assert.equal(maySwap(process.pid, root), true);
    writeFileSync(join(root, 'memory.swap.max'), '0\n');
    assert.equal(maySwap(process.pid, root), false);
  } finally {
    rmSync(root, { recursive: true });
  }
});

for (const [limit, ofFile, ofProgram] of [
  ['0', false, true],
  ['1', false, false],
  ['2', true, true],
  ['unlimited', true, true],
] as const) {
  test(`a core limit of ${limit} leaves a file: ${ofFile}, starts a program: ${ofProgram}`, () => {
    const limits = `Limit  Soft Limit  Hard Limit  Units\nMax core file size        ${limit}  unlimited  bytes\n`;
    assert.equal(leavesCore(limits, 'core\n'), ofFile);
    assert.equal(leavesCore(limits, '|/usr/lib/systemd/systemd-coredump %P\n'), ofProgram);
    assert.equal(leavesCore('', 'core\n'), false, 'the process has ended');
  });
}

/** Writes the files of a block device as sysfs has them, by their paths. */
function deviceOf(t: TestContext, files: Readonly<Record<string, string>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'gnt-device-'));
  t.after(() => rmSync(dir, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  return dir;
}

for (const [what, files, expected] of [
  ['dm-crypt', { 'dm/uuid': 'CRYPT-LUKS2-1\n' }, true],
  ['a volume', { 'dm/uuid': 'LVM-1\n' }, false],
  ['a partition', { partition: '2\n' }, false],
  ['a volume on dm-crypt', { 'dm/uuid': 'LVM-1\n', 'slaves/dm-0/dm/uuid': 'CRYPT-1\n' }, true],
  [
    'a volume on dm-crypt and on a disk',
    { 'slaves/dm-0/dm/uuid': 'CRYPT-1\n', 'slaves/sda/size': '8\n' },
    false,
  ],
  ['zram', { mm_stat: '0\n', backing_dev: 'none\n' }, true],
  ['zram of an older kernel', { mm_stat: '0\n' }, true],
  ['zram with a disk behind it', { mm_stat: '0\n', backing_dev: '/dev/sda3\n' }, false],
] as const) {
  test(`swap on ${what} is ${expected ? 'safe' : 'not safe'} from the thief of a disk`, (t) => {
    assert.equal(isSafeDevice(deviceOf(t, files)), expected);
  });
}

test('swap on a device that is gone is not safe', () => {
  assert.equal(isSafeDevice('/nonexistent/8:1'), false);
});
