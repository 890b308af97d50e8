import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { examineSecrecy } from '../../../../noded/operations/doctor/examine-secrecy.ts';
import {
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
