import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { resumeHalted, roomToResume } from '../../../../noded/instances/machines/resume-halted.ts';
import { FakeMachine } from '../../support/fake-machine.ts';

/** @param pools whether those of the machines' volumes are full; null: they have none */
async function lookBeside(
  pools: boolean | null,
  freeBytes: number,
  ...machines: readonly FakeMachine[]
): Promise<void> {
  const kept = machines.map((machine) => ({
    ...{ machine, kind: 'run', instanceName: 'a', device: null, isOrphan: false, lostSecrets: [] },
  })) as never;
  await resumeHalted({
    keeper: { list: () => kept },
    disks: {
      freeBytes: () => Promise.resolve(freeBytes),
      isPoolFull: () => Promise.resolve(pools),
      totalBytes: () => Promise.resolve(100 * GIB),
    },
    logger: silentLogger,
  });
}

const look = lookBeside.bind(undefined, null);

function halted(reason: 'disk-full' | 'disk-error'): FakeMachine {
  const machine = new FakeMachine();
  machine.halt = { reason, sinceMs: 0 };
  return machine;
}

test('guests go on at a twentieth of the file system, at most 256 MiB, at least one', () => {
  assert.equal(roomToResume(100 * MIB), 5 * MIB);
  assert.equal(roomToResume(100 * GIB), 256 * MIB);
  assert.equal(roomToResume(2 * MIB), MIB);
});

test('only guests that found the disks full go on, and only when there is room', async () => {
  const [full, broken, well] = [halted('disk-full'), halted('disk-error'), new FakeMachine()];
  await look(255 * MIB, full, broken, well);
  assert.deepEqual([full.resumes, broken.resumes, well.resumes], [0, 0, 0]);
  await look(256 * MIB, full, broken, well);
  assert.deepEqual([full.resumes, broken.resumes, well.resumes], [1, 0, 0]);
});

test('a guest that cannot be told to go on does not keep the others', async () => {
  const [first, second] = [halted('disk-full'), halted('disk-full')];
  first.resume = () => Promise.reject(new Error('no answer'));
  await look(GIB, first, second);
  assert.equal(second.resumes, 1);
});

test('a guest on volumes waits for room in their pool, and for no other', async () => {
  const machine = halted('disk-full');
  await lookBeside(true, GIB, machine);
  assert.equal(machine.resumes, 0);
  await lookBeside(false, 0, machine);
  assert.equal(machine.resumes, 1);
});
