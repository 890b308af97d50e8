import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { listenForGaneti } from '../../../metad/ganeti/luxi-server.ts';
import { LuxiClient } from '../support/luxi-client.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-luxi-'));
after(() => rmSync(directory, { recursive: true }));

test('what follows a request that is none is neither answered nor logged, however much it is', async () => {
  const refused: unknown[] = [];
  const socketPath = join(directory, 'luxi.sock');
  await using server = await listenForGaneti({
    socketPath,
    updateConfig: async () => undefined,
    logger: { ...silentLogger, warn: (...record: unknown[]) => void refused.push(record) },
  });
  assert.ok(server);
  using client = await LuxiClient.open(socketPath);
  assert.deepEqual(await client.call('echo', 'hi'), { success: true, result: 'hi' });
  client.send(Buffer.alloc(60_000, 3));
  assert.deepEqual(await client.receive(), {
    success: false,
    result: 'Failed to parse request: not JSON',
  });
  assert.equal(await client.receive(), null);
  assert.equal(refused.length, 1);
});

test('requests that are sent ahead are answered in their order, each once', async () => {
  const socketPath = join(directory, 'ahead.sock');
  let atOnce = 0;
  await using server = await listenForGaneti({
    socketPath,
    updateConfig: async () => {
      atOnce += 1;
      assert.equal(atOnce, 1);
      await new Promise(setImmediate);
      atOnce -= 1;
    },
    logger: silentLogger,
  });
  assert.ok(server);
  using client = await LuxiClient.open(socketPath);
  const requests = Array.from({ length: 200 }, (_, index) =>
    index % 3 === 0
      ? { method: 'updateConfig', args: [{}] }
      : { method: 'echo', args: [String(index)] },
  );
  client.send(requests.map((request) => `${JSON.stringify(request)}\x03`).join(''));
  for (const { method, args } of requests)
    assert.deepEqual(await client.receive(), {
      success: true,
      result: method === 'echo' ? args[0] : [],
    });
});
