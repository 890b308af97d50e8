import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isRepeating,
  judgeSurvivor,
  mayBeElsewhere,
  planDowntime,
  tellRates,
} from '../../../../noded/cluster/migration/plan-migration.ts';

const RUNNING = { run: 'running', migration: 'none', isMirrored: false };

test('a guest may stand still longer and longer, and no longer than ten seconds', () => {
  assert.deepEqual([0, 9_999, 10_000, 20_000, 3_600_000, -1].map(planDowntime), [
    ...[300, 300, 600, 1200, 9600, 300],
  ]);
  assert.deepEqual(
    [1, 2, 3].map((passes) => isRepeating({ passes })),
    [false, false, true],
  );
});

test('the rates are told in words', () => {
  const progress = { status: 'active', remainingBytes: 0, totalBytes: 0, passes: 3 };
  assert.match(
    tellRates({ ...progress, dirtyRate: 20 * 2 ** 20, sentRate: 5 * 2 ** 20 }, 600),
    /writes 20 MiB\/s .* 5 MiB\/s are sent: .* 600 ms/,
  );
});

test('only a machine of which a migration was under way is asked about', () => {
  assert.equal(mayBeElsewhere('run', RUNNING), false);
  for (const migration of ['completed', 'cancelled', 'failed'])
    assert.equal(mayBeElsewhere('run', { ...RUNNING, migration }), false, migration);
  // A snapshot, and a disk that is full.
  for (const run of ['paused', 'io-error'])
    assert.equal(mayBeElsewhere('run', { ...RUNNING, run }), false, run);
  for (const migration of ['setup', 'active', 'pre-switchover', 'device', 'cancelling'])
    assert.equal(mayBeElsewhere('run', { ...RUNNING, migration }), true, migration);
  for (const run of ['inmigrate', 'finish-migrate', 'postmigrate'])
    assert.equal(mayBeElsewhere('run', { ...RUNNING, run }), true, run);
  assert.equal(mayBeElsewhere('run', { ...RUNNING, isMirrored: true }), true);
  // Killed between the note that it has arrived, and its going on.
  const arrived = { run: 'paused', migration: 'completed', isMirrored: false };
  assert.equal(mayBeElsewhere('run', arrived), true);
  // A newer QEMU that was paused before its memory was sent stays paused after a failure.
  for (const migration of ['failed', 'cancelled'])
    assert.equal(mayBeElsewhere('run', { ...arrived, migration }), true, migration);
  assert.equal(mayBeElsewhere('moving', RUNNING), true);
});

test('a guest goes on where the record says, if it is whole there', () => {
  for (const run of ['running', 'paused', 'postmigrate', 'finish-migrate']) {
    assert.equal(judgeSurvivor({ run }, true), 'goes-on', run);
    assert.equal(judgeSurvivor({ run }, false), 'ends', run);
  }
  assert.equal(judgeSurvivor({ run: 'inmigrate' }, true), 'ends');
});
