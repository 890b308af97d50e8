import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ReceivingFiles } from '../../../../noded/cluster/migration/receive-files.ts';

const FILE = { name: 'disk0.raw', sizeBytes: 100 };

/** Encodes a record with an empty message. */
function record(position: number): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64BE(BigInt(position), 4);
  return head;
}

test('a stream that is opened while all end is refused', async () => {
  const slow = Promise.withResolvers<undefined>();
  const receiving = new ReceivingFiles({ write: () => slow.promise }, [FILE]);
  (await receiving.open(FILE.name)).write(record(1));
  await turn();
  // Waits for the record of the first stream.
  const second = receiving.open(FILE.name);
  await turn();
  const ended = receiving.end();
  slow.resolve(undefined);
  await ended;
  await assert.rejects(second, { code: 'NOT_FOUND' });
  await assert.rejects(receiving.open(FILE.name), { code: 'NOT_FOUND' });
});

test('a record that ends at any byte is sent again from the last whole one', async () => {
  const written: Buffer[] = [];
  const write = (_name: string, message: Buffer): Promise<void> => {
    written.push(Buffer.from(message));
    return Promise.resolve();
  };
  const receiving = new ReceivingFiles({ write }, [FILE]);
  const head = record(FILE.sizeBytes);
  head.writeUInt32BE(5);
  const whole = Buffer.concat([head, Buffer.from('hello')]);
  for (let cutAt = 0; cutAt < whole.length; cutAt += 1) {
    const stream = await receiving.open(FILE.name);
    stream.end(whole.subarray(0, cutAt));
    const [answer] = (await once(stream, 'data')) as [Buffer];
    assert.equal(answer.readBigUInt64BE(), 0n);
  }
  assert.deepEqual(written, []);
  const stream = await receiving.open(FILE.name);
  stream.end(whole);
  await once(stream.resume(), 'end');
  assert.deepEqual(written.map(String), ['hello']);
});

test('the next stream reports a failed write, but no cut', async () => {
  let failure: Error | null = null;
  const write = (): Promise<void> =>
    failure === null ? Promise.resolve() : Promise.reject(failure);
  const receiving = new ReceivingFiles({ write }, [FILE, { ...FILE, name: 'disk1.raw' }]);
  const first = await receiving.open(FILE.name);
  first.write(record(1));
  first.destroy();
  const second = await receiving.open(FILE.name);
  const full = new Error('no space');
  failure = full;
  second.write(record(2));
  second.end();
  await assert.rejects(once(second.resume(), 'end'), full);
  await assert.rejects(receiving.open(FILE.name), full);
  await assert.rejects(receiving.open(FILE.name), full);
  await receiving.open('disk1.raw');
});
