import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readBatches, writeBatch } from '../../../noded/storage/data-blocks.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';

async function openFile(t: TestContext, name: string, content: Buffer) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-blocks-'));
  t.after(() => rm(dir, { recursive: true }));
  const path = join(dir, name);
  const file = await open(path, 'wx+');
  t.after(() => file.close());
  await file.write(content);
  return { path, file };
}

function block(offset: bigint, length: number, bytes = Buffer.alloc(length, 1)): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64BE(offset);
  head.writeUInt32BE(length, 8);
  return Buffer.concat([head, bytes]);
}

test('a message of a hostile node writes nothing at all, and nothing beside the file', async (t) => {
  const { path, file } = await openFile(t, 'disk0.raw', Buffer.alloc(MIB));
  const good = block(0n, 4);
  for (const [what, message] of Object.entries({
    'behind the end': block(BigInt(MIB) - 3n, 4),
    'far behind it': block(2n ** 63n, 4),
    'at the last offset': block(2n ** 64n - 1n, 1),
    'a length beyond the message': block(0n, 2 ** 32 - 1, Buffer.alloc(8)),
    'an empty block': block(0n, 0),
    'half a head': Buffer.alloc(11),
    'more blocks than are sent': Buffer.concat(
      Array.from({ length: 65 }, (_, at) => block(BigInt(at), 1)),
    ),
  }))
    await assert.rejects(
      writeBatch(file, Buffer.concat([good, message]), MIB),
      { code: 'VALIDATION' },
      what,
    );
  assert.ok((await readFile(path)).equals(Buffer.alloc(MIB)));
});

test('every message that a node makes of a file is taken', async (t) => {
  const content = Buffer.alloc(3 * MIB + 5 * KIB + 7);
  for (let at = 0; at < content.length; at += 3 * KIB) content[at] = 1 + (at % 251);
  const { file } = await openFile(t, 'from.raw', content);
  const to = await openFile(t, 'to.raw', Buffer.alloc(content.length));
  for await (const { message } of readBatches(file, new AbortController().signal))
    await writeBatch(to.file, message, content.length);
  assert.ok((await readFile(to.path)).equals(content));
});

test('messages are the blocks that are not zeros, and stay while the next one is read', async (t) => {
  const content = Buffer.alloc(5 * MIB + 100);
  // Blocks of zeros between data, a whole message of zeros, and a short last block.
  for (const at of [0, 64 * KIB, 192 * KIB, 3 * MIB + 1, 4 * MIB, 5 * MIB + 99]) content[at] = 7;
  content.fill(9, 256 * KIB, 2 * MIB);
  const expected: Buffer[] = [];
  for (let at = 0; at < content.length; at += 64 * KIB) {
    const bytes = content.subarray(at, at + 64 * KIB);
    if (bytes.some((byte) => byte !== 0)) expected.push(block(BigInt(at), bytes.length, bytes));
  }
  const { file } = await openFile(t, 'from.raw', content);
  const heard: Buffer[] = [];
  let held: Buffer | undefined;
  for await (const { message } of readBatches(file, new AbortController().signal)) {
    if (held !== undefined) heard.push(Buffer.from(held));
    held = message;
  }
  assert.ok(held !== undefined);
  assert.ok(Buffer.concat([...heard, held]).equals(Buffer.concat(expected)));
});
