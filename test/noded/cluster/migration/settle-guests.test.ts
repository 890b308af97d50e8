import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { goOn, settleGuest } from '../../../../noded/cluster/migration/settle-guests.ts';
import type { MigrationState } from '../../../../noded/vmm/machine-migration.ts';

const UUID = '11111111-1111-4111-8111-111111111111';
const NODE = 'node1';

/** @returns the commands to QEMU and metad for an instance that stays on this node */
async function settle(state: MigrationState): Promise<readonly string[]> {
  const told: string[] = [];
  const refuse = (): never => assert.fail('it is asked for nothing else');
  const tell = (what: string) => () => Promise.resolve(void told.push(what));
  const migration = {
    ...{ describe: refuse, mirror: refuse, mirrors: refuse, endMirrors: refuse, send: refuse },
    ...{ allowDowntime: refuse, sending: refuse, sendRest: refuse, receive: refuse },
    ...{ endReceiving: refuse, state: () => Promise.resolve(state), abandon: tell('goes on') },
  };
  const isKept = await settleGuest({ uuid: UUID, migration }, 'run', {
    ...{ nodeName: NODE, owns: (node: string) => node === NODE, logger: silentLogger },
    instances: {
      ...{ findByUuid: refuse, hasLeft: refuse, departedFrom: refuse, forgetDeparture: refuse },
      update: () => Promise.resolve({ primaryNode: NODE } as never),
    },
    metad: { stay: tell('is served') },
  });
  assert.ok(isKept);
  return told;
}

test('a guest that QEMU itself let go on, when its daemon was killed, is served again', async () => {
  const state = { run: 'running', migration: 'failed', isMirrored: false };
  assert.deepEqual(await settle(state), ['is served']);
});

test('a guest that stood still for its memory, when its daemon was killed, goes on', async () => {
  const state = { run: 'paused', migration: 'failed', isMirrored: false };
  assert.deepEqual(await settle(state), ['is served', 'goes on']);
});

test('a guest of which no migration was begun is left alone', async () => {
  for (const run of ['running', 'paused', 'io-error'])
    assert.deepEqual(await settle({ run, migration: 'none', isMirrored: false }), [], run);
});

test('a guest that stays does not stand still for a slow metad, which is told until it answers', async () => {
  const order: string[] = [];
  let asked = 0;
  const stay = async (): Promise<void> => {
    asked += 1;
    order.push(`told ${asked}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (asked < 3) throw new AppError('METAD_UNAVAILABLE', 'it does not answer');
    order.push('serves');
  };
  const abandon = (): Promise<void> => Promise.resolve(void order.push('goes on'));
  await goOn(UUID, { abandon }, { metad: { stay }, logger: silentLogger });
  assert.deepEqual(order, ['told 1', 'goes on', 'told 2', 'told 3', 'serves']);
});
