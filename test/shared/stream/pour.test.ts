import assert from 'node:assert/strict';
import { PassThrough, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { pour } from '#shared/stream/pour.ts';
import { spendBuffer } from '#shared/stream/spend-buffer.ts';

const SIZE = 64 * 1024;
const create = (): Buffer => Buffer.allocUnsafeSlow(SIZE).fill('x');

test('the memory of a chunk is there until it is written, and gone then', async () => {
  const chunks = [create(), create(), create()];
  const sizes: number[] = [];
  const slow = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, callback) => {
      setImmediate(() => {
        sizes.push(chunk.length);
        callback();
      });
    },
  });
  await pour(Readable.from(chunks, { objectMode: true }), slow);
  await finished(slow);
  assert.deepEqual(sizes, [SIZE, SIZE, SIZE]);
  assert.deepEqual(
    chunks.map(({ buffer }) => buffer.byteLength),
    [0, 0, 0],
  );
});

test('a chunk that shares its memory keeps it', () => {
  const whole = create();
  spendBuffer(whole.subarray(10));
  assert.equal(whole.length, SIZE);
  const small = Buffer.from('small');
  spendBuffer(small);
  assert.equal(String(small), 'small');
});

test('no chunk is taken while the reader is slow', async (t) => {
  let taken = 0;
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) {
      taken += 1;
      yield Promise.resolve(create());
    }
  }
  const stuck = new Writable({ highWaterMark: 2 * SIZE, write: () => undefined });
  t.after(() => stuck.destroy());
  void pour(endless(), stuck);
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(taken, 2);
});

test('what breaks off is not ended but destroyed', async () => {
  const to = new PassThrough({ highWaterMark: 2 * SIZE });
  async function* broken(): AsyncGenerator<Buffer> {
    yield await Promise.resolve(create());
    throw new Error('cut');
  }
  await pour(broken(), to);
  assert.deepEqual([to.destroyed, to.writableEnded], [true, false]);
});

for (const when of ['before', 'while it waits'] as const) {
  test(`a reader that is gone ${when} ends the sender`, async () => {
    const stuck = new Writable({ highWaterMark: 1, write: () => undefined });
    let isOver = false;
    async function* chunks(): AsyncGenerator<Buffer> {
      try {
        for (;;) yield await Promise.resolve(create());
      } finally {
        isOver = true;
      }
    }
    if (when === 'before') stuck.destroy();
    const poured = pour(chunks(), stuck);
    if (when !== 'before') setImmediate(() => stuck.destroy());
    await poured;
    assert.equal(isOver, true);
  });
}
