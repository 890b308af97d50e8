import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { settleGuest } from '../../../noded/cluster/settle-guests.ts';
import type { MigrationState } from '../../../noded/hypervisor/machine-migration.ts';

const UUID = '11111111-1111-4111-8111-111111111111';
const NODE = 'node1';

/** @returns what a machine and metad are told, of an instance that stays this node's */
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
      findByUuid: refuse,
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
