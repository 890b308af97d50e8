import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { ByteQueue } from '../../../metad/channel/byte-queue.ts';

test('bytes are read once, and offsets count on after a read', () => {
  const queue = new ByteQueue(100);
  queue.push(Buffer.from('abc'));
  assert.deepEqual(queue.take(), { bytes: Buffer.from('abc'), nextOffset: 3 });
  assert.deepEqual(queue.take(), { bytes: Buffer.alloc(0), nextOffset: 3 });
  queue.push(Buffer.from('de'));
  assert.deepEqual(queue.take(), { bytes: Buffer.from('de'), nextOffset: 5 });
});

test('a write that does not fit is refused whole', () => {
  const queue = new ByteQueue(4);
  assert.equal(queue.push(Buffer.from('abc')), true);
  assert.equal(queue.push(Buffer.from('de')), false);
  assert.equal(queue.push(Buffer.from('d')), true);
  assert.equal(queue.take().bytes.toString(), 'abcd');
});

test('reading from an offset repeats the same bytes until a higher offset acknowledges them', () => {
  const queue = new ByteQueue(100);
  queue.push(Buffer.from('abcdef'));
  assert.equal(queue.readFrom(2)?.bytes.toString(), 'cdef');
  assert.equal(queue.readFrom(2)?.bytes.toString(), 'cdef');
  assert.deepEqual(queue.readFrom(6), { bytes: Buffer.alloc(0), nextOffset: 6 });
  assert.equal(queue.waitingBytes, 0);
});

test('an acknowledged offset returns the remaining bytes, and an offset beyond the end returns null', () => {
  const queue = new ByteQueue(100);
  queue.push(Buffer.from('abcdef'));
  queue.readFrom(4);
  assert.equal(queue.readFrom(0)?.bytes.toString(), 'ef');
  assert.equal(queue.readFrom(7), null);
});

test('a waiting reader wakes up at the next write, and at its deadline', async () => {
  const queue = new ByteQueue(100);
  const write = queue.waitForWrite(new AbortController().signal);
  queue.push(Buffer.from('x'));
  await write;
  const controller = new AbortController();
  const wait = queue.waitForWrite(controller.signal);
  controller.abort();
  await wait;
});

test('written bytes are read in order and once, for any mixture of sizes', () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('push' as const), bytes: fc.uint8Array({ maxLength: 9000 }) }),
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({
      kind: fc.constant('ack' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  );
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const queue = new ByteQueue(20_000);
      let model = Buffer.alloc(0);
      let first = 0;
      for (const step of operations) {
        if (step.kind === 'push') {
          const accepted = queue.push(Buffer.from(step.bytes));
          assert.equal(accepted, model.length + step.bytes.length <= 20_000);
          if (accepted) model = Buffer.concat([model, step.bytes]);
        } else if (step.kind === 'take') {
          assert.ok(queue.take().bytes.equals(model));
          first += model.length;
          model = Buffer.alloc(0);
        } else {
          const count = Math.floor(step.share * model.length);
          model = model.subarray(count);
          first += count;
          const slice = queue.readFrom(first);
          assert.ok(slice?.bytes.equals(model));
          assert.equal(slice?.nextOffset, first + model.length);
        }
        assert.equal(queue.waitingBytes, model.length);
      }
    }),
  );
});
