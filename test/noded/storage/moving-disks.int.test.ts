import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { readBatches } from '../../../noded/storage/data-blocks.ts';
import { createBlocksDigest, createMessagesDigest } from '../../../noded/storage/file-digests.ts';
import { createMovingDisks, type MovingDisks } from '../../../noded/storage/moving-disks.ts';

/** Returns the bytes that this process has read from disks, without the page cache. */
async function readFromDisks(): Promise<number> {
  return Number(/^read_bytes: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8'))?.[1]);
}

function openMoving(folder: string): MovingDisks {
  const nobody = (): Promise<never> => Promise.reject(new Error('nothing departs'));
  const noPath = (): never => assert.fail('nothing departs');
  return createMovingDisks(folder, {
    ...{ activate: nobody, settle: nobody, variablesPathOf: noPath, seedPathOf: noPath },
  });
}

for (const [form, createDigest] of [
  ['blocks', createBlocksDigest],
  ['messages, as of release 0.2', createMessagesDigest],
] as const)
  test(`a received disk is read again for its verification: digest of ${form}`, async (t) => {
    // `/tmp` may be in memory, where the page cache is the file system.
    const folder = await mkdtemp('/var/tmp/gnt-moving-');
    t.after(() => rm(folder, { recursive: true }));
    const moving = openMoving(folder);
    const content = randomBytes(4 * MIB);
    const source = join(folder, 'source');
    await using file = await open(source, 'w+');
    await file.write(content);
    const hash = createDigest();
    await using arrival = await moving.arrive(randomUUID(), [
      { name: 'disk0.raw', sizeBytes: content.length },
    ]);
    for await (const { message } of readBatches(file, AbortSignal.timeout(60_000))) {
      hash.update(message);
      await arrival.write('disk0.raw', message);
    }
    const before = await readFromDisks();
    const digest = hash.finish(content.length);
    await arrival.verify({ 'disk0.raw': digest }, AbortSignal.timeout(60_000));
    assert.ok((await readFromDisks()) - before >= content.length);
  });

for (const [code, told] of [
  ['EIO', { code: 'MIGRATION_FAILED', message: /did not arrive in .*: EIO: broken/ }],
  ['EDQUOT', { code: 'DISK_FULL', message: / is full: the disks did not arrive/ }],
] as const)
  test(`a disk that fails with ${code} is named`, async (t) => {
    const folder = await mkdtemp('/var/tmp/gnt-moving-');
    t.after(() => rm(folder, { recursive: true }));
    await using arrival = await openMoving(folder).arrive(randomUUID(), [
      { name: 'disk0.raw', sizeBytes: MIB },
    ]);
    const failure = Object.assign(new Error(`${code}: broken`), { code });
    await using any = await open(folder);
    // No device here fails on request.
    t.mock.method(Object.getPrototypeOf(any) as typeof any, 'writev', () =>
      Promise.reject(failure),
    );
    const message = Buffer.concat([Buffer.alloc(11), Buffer.from([1]), Buffer.from('x')]);
    await assert.rejects(arrival.write('disk0.raw', message), told);
  });
