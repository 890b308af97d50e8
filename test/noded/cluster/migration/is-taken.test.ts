import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createIsTaken } from '../../../../noded/cluster/migration/settle-moves.ts';

const UUID = '00000000-0000-4000-8000-000000000001';
const failing = (error: Error) => createIsTaken({ open: () => Promise.reject(error) });

test('disks stay while the other node does not confirm that it has them', async () => {
  for (const isTaken of [createIsTaken(null), failing(new Error('broken pipe'))])
    await assert.rejects(isTaken('node2', UUID), {
      ...{ code: 'NODE_UNREACHABLE', details: { node: 'node2' } },
    });
});

test('the refusal of another node is passed on', async () => {
  const refusal = new AppError('NODE_OFFLINE', 'node2 is offline');
  await assert.rejects(failing(refusal)('node2', UUID), refusal);
});
