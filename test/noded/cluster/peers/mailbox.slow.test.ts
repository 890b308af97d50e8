import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Mailbox } from '../../../../noded/cluster/peers/mailbox.ts';
import { startRedis } from '../../support/redis-server.ts';

/** Twice the store timeout of a node. */
const IN_TIME_MS = 20_000;

test('sending fails with STORE_UNAVAILABLE when the store hangs', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const mailbox = await Mailbox.open({
    server: { url: `unix:${redis.socket}` },
    node: 'a',
    onMessage: () => undefined,
    onLost: () => undefined,
    logger: silentLogger,
  });
  t.after(() => mailbox[Symbol.asyncDispose]());
  redis.pause();
  const told = await Promise.race([
    mailbox.send('a', Buffer.from('one')).catch((error: unknown) => error),
    sleep(IN_TIME_MS, 'nothing', { ref: false }),
  ]);
  assert.ok(isAppError(told, 'STORE_UNAVAILABLE'), String(told));
});
