import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createMigrationTargetClient } from '../../../../noded/cluster/migration/migration-target-client.ts';

test('a question that was answered by a cut link after a long time is asked again', async (t) => {
  let asked = 0;
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const open = (): Promise<never> => {
    nowMs += (asked += 1) === 1 ? 20 * 60_000 : 1;
    if (asked <= 2) throw new AppError('NODE_UNREACHABLE', 'the link was cut');
    throw new AppError('CONFLICT', 'it is what it should not be');
  };
  const at = { uuid: randomUUID(), session: randomUUID() };
  const { signal } = new AbortController();
  const client = createMigrationTargetClient({ open }, 'node2.example.com');
  await assert.rejects(client.verify(at, {}, signal), { code: 'CONFLICT' });
  assert.equal(asked, 3);
});

test('patience ends when everything fails for long', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const open = (): Promise<never> => {
    nowMs += 4 * 60_000;
    throw new AppError('NODE_UNREACHABLE', 'the link was cut');
  };
  const at = { uuid: randomUUID(), session: randomUUID() };
  const { signal } = new AbortController();
  const client = createMigrationTargetClient({ open }, 'node2.example.com');
  await assert.rejects(client.verify(at, {}, signal), { code: 'NODE_UNREACHABLE' });
});
