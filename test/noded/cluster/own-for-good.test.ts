import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  isOwnForGood,
  type SettleMovesDependencies,
} from '../../../noded/cluster/migration/settle-moves.ts';

const UUID = '6f2d1a52-6d53-4a57-9f0a-1d0c1c7a3f55';
const [SOURCE, TARGET] = ['node1.example.com', 'node2.example.com'];

/** @param written the node in the written record, or the error of the write */
function ask(read: string, written: string | AppError): Promise<boolean> {
  const naming = (primaryNode: string): InstanceRecord => ({ primaryNode }) as InstanceRecord;
  const instances = {
    findByUuid: () => Promise.resolve(naming(read)),
    update: () =>
      typeof written === 'string' ? Promise.resolve(naming(written)) : Promise.reject(written),
  } as unknown as SettleMovesDependencies['instances'];
  return isOwnForGood(UUID, { nodeName: TARGET, owns: (node) => node === TARGET, instances });
}

test('what a record gives to this node is its own when a write of its own has come through', async () => {
  assert.equal(await ask(TARGET, TARGET), true);
});

test('a commit that can be read, and that no replica has yet, is no reason to go on', async () => {
  const alone = new AppError('STORE_UNAVAILABLE', 'no replica has it');
  await assert.rejects(ask(TARGET, alone), { code: 'STORE_UNAVAILABLE' });
});

test('a commit that was read, and that a failover has taken back, gives nothing', async () => {
  assert.equal(await ask(TARGET, SOURCE), false);
});
