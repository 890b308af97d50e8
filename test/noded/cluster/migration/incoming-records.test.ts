import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MAX_BATCH_BYTES } from '#shared/contract/move.ts';
import { MIB } from '#shared/units/bytes.ts';
import { IncomingRecords } from '../../../../noded/cluster/migration/incoming-records.ts';

setFlagsFromString('--expose-gc');
// Only a new context has the function.
const collectGarbage = runInNewContext('gc') as () => void;

function record(position: bigint, message = Buffer.alloc(0), length = message.length): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt32BE(length);
  head.writeBigUInt64BE(position, 4);
  return Buffer.concat([head, message]);
}

test('records in pieces of any size are written in order, and answered', async () => {
  const written: [string, number][] = [];
  const stream = new IncomingRecords({
    ...{ position: 1, sizeBytes: 9 },
    write: async (message, position) => {
      await turn();
      written.push([String(message), position]);
    },
  });
  const bytes = Buffer.concat([
    record(2n, Buffer.from('one')),
    record(5n),
    record(9n, Buffer.from('three')),
  ]);
  const answered: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => answered.push(chunk));
  for (let at = 0; at < bytes.length; at += 5) stream.write(bytes.subarray(at, at + 5));
  stream.end();
  await once(stream, 'end');
  assert.deepEqual(written, [
    ['one', 2],
    ['', 5],
    ['three', 9],
  ]);
  const all = Buffer.concat(answered);
  assert.equal(all.readBigUInt64BE(0), 1n);
  assert.equal(all.readBigUInt64BE(all.length - 8), 9n);
});

for (const [what, bytes] of Object.entries({
  'a message over the limit': record(1n, Buffer.alloc(0), MAX_BATCH_BYTES + 1),
  'the longest length': record(1n, Buffer.alloc(0), 2 ** 32 - 1),
  'a position beyond the file': record(BigInt(MIB) + 1n),
  'the last position': record(2n ** 64n - 1n),
  'no progress': Buffer.concat([record(7n), record(7n)]),
}))
  test(`a stream is refused: ${what}`, async () => {
    const stream = new IncomingRecords({
      ...{ position: 0, sizeBytes: MIB },
      write: () => Promise.resolve(),
    });
    stream.resume();
    stream.write(bytes);
    await assert.rejects(once(stream, 'close'), { code: 'VALIDATION' });
  });

/** Receives records of a file whose writes wait for a promise. */
function receiveSlowly() {
  const slow = Promise.withResolvers<undefined>();
  let begun = 0;
  const stream = new IncomingRecords({
    ...{ position: 0, sizeBytes: 100 },
    write: async () => {
      begun += 1;
      await slow.promise;
    },
  });
  return { stream, slow, begun: () => begun };
}

test('a slow disk holds the sender back after two records', async () => {
  const { stream, slow, begun } = receiveSlowly();
  let accepted = 0;
  for (let at = 1n; at <= 10n; at += 1n) stream.write(record(at), () => (accepted += 1));
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.deepEqual([begun(), accepted], [1, 1]);
  slow.resolve(undefined);
  stream.end();
  await once(stream.resume(), 'end');
  assert.equal(begun(), 10);
});

test('a closed stream writes no further record', async () => {
  const { stream, slow, begun } = receiveSlowly();
  // The second record waits for the first one.
  stream.write(Buffer.concat([record(1n), record(2n), record(3n)]));
  await turn();
  stream.destroy();
  const idle = stream.whenIdle();
  slow.resolve(undefined);
  await idle;
  await turn();
  assert.equal(begun(), 1);
  assert.equal(stream.errored, null);
});

test('a file that has arrived keeps no memory', async () => {
  const arrived: IncomingRecords[] = [];
  const before = heldBytes();
  for (let index = 0; index < 16; index += 1) {
    const write = (): Promise<void> => Promise.resolve();
    const stream = new IncomingRecords({ position: 0, sizeBytes: 1, write });
    stream.end(record(1n, Buffer.from('x')));
    await once(stream.resume(), 'close');
    arrived.push(stream);
  }
  assert.ok(heldBytes() - before < MIB, `${heldBytes() - before} bytes`);
  assert.equal(arrived.length, 16);
});

function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}
