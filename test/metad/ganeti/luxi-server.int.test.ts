import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { MIB } from '#shared/units/bytes.ts';
import { LuxiDecoder } from '../../../metad/ganeti/luxi-requests.ts';
import { listenForGaneti } from '../../../metad/ganeti/luxi-server.ts';
import { type Stretches, threadStretches } from '../../lab/thread-time.ts';
import { LuxiClient } from '../support/luxi-client.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-luxi-'));
after(() => rmSync(directory, { recursive: true }));

test('data after a malformed request is neither answered nor logged', async () => {
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

test('requests of a client that does not read its answers are not parsed', async () => {
  const socketPath = join(directory, 'deaf.sock');
  let parsed = 0;
  await using server = await listenForGaneti({
    socketPath,
    updateConfig: async () => void (parsed += 1),
    logger: silentLogger,
  });
  assert.ok(server);
  using client = await LuxiClient.open(socketPath);
  client.stopReading();
  const echo = `${JSON.stringify({ method: 'echo', args: ['x'.repeat(MIB)] })}\x03`;
  client.send(echo.repeat(8));
  client.send('{"method": "updateConfig", "args": [{}]}\x03');
  using other = await LuxiClient.open(socketPath);
  for (let index = 0; index < 50; index += 1)
    assert.deepEqual(await other.call('echo', 'hi'), { success: true, result: 'hi' });
  assert.equal(parsed, 0, 'it was answered what it does not read');
});

test('eight MiB are echoed, and a request of too many values is refused without blocking the daemon', async () => {
  const socketPath = join(directory, 'large.sock');
  const options = { socketPath, updateConfig: async () => undefined, logger: silentLogger };
  await using server = await listenForGaneti(options);
  assert.ok(server);
  const text = 'x'.repeat(8 * MIB);
  using client = await LuxiClient.open(socketPath);
  assert.deepEqual(await client.call('echo', text), { success: true, result: text });
  const isFine = ({ longestMs }: Stretches): boolean => longestMs < 150;
  const stretches = await threadStretches(async () => {
    using other = await LuxiClient.open(socketPath);
    other.send(`{"method":"updateConfig","args":[[${'[],'.repeat(2 * MIB)}0]]}\x03`);
    assert.match(JSON.stringify(await other.receive()), /more than 50000 values/);
  }, isFine);
  assert.ok(isFine(stretches), JSON.stringify(stretches));
});

test('a 4 MiB message in one-byte pieces needs less than 100 MiB of memory', () => {
  const decoder = new LuxiDecoder(9 * MIB);
  const [piece] = [Buffer.from('x')];
  const before = process.memoryUsage().rss;
  for (let index = 0; index < 4 * MIB; index += 1) assert.equal(decoder.push(piece).length, 0);
  const grownMiB = (process.memoryUsage().rss - before) / MIB;
  assert.equal(decoder.push(Buffer.from([3]))[0]?.length, 4 * MIB);
  assert.ok(grownMiB < 100, `${grownMiB} MiB for 4`);
});
