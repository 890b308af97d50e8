import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { MIB } from '#shared/units/bytes.ts';
import { digestFile } from '../../../../noded/content/images/digest.ts';
import { openLocalImage } from '../../../../noded/content/images/local-image.ts';
import { refuseOversizedImage, writeImage } from '../../../../noded/content/images/write-image.ts';

const SIZE_BYTES = 2.5 * MIB;
const { signal } = new AbortController();
const unreadable = { code: 'IMAGE_UNREADABLE', message: /changed while it was (used|read)/ };
let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-write-'));
});
after(() => rm(dir, { recursive: true }));

/** Returns an open image, its file, and an empty disk of its size. */
async function prepare(t: { after(close: () => void): void }) {
  const [file, disk] = [join(dir, 'image.raw'), join(dir, 'disk.raw')];
  await writeFile(file, Buffer.alloc(SIZE_BYTES, 'x'));
  await writeFile(disk, '');
  await truncate(disk, SIZE_BYTES);
  const image = { ...(await openLocalImage(file)), sha256: null };
  t.after(() => image.release());
  return { file, disk, image };
}

test('an image is written whole', async (t) => {
  const { file, disk, image } = await prepare(t);
  const done: number[] = [];
  await writeImage(image, disk, signal, (doneBytes) => done.push(doneBytes));
  assert.deepEqual(await readFile(disk), await readFile(file));
  assert.equal(done.at(-1), SIZE_BYTES);
});

test('an image that grows while it is written fails, and the disk keeps its size', async (t) => {
  const { file, disk, image } = await prepare(t);
  await appendFile(file, Buffer.alloc(MIB, 'y'));
  await assert.rejects(
    writeImage(image, disk, signal, () => undefined),
    unreadable,
  );
  assert.equal((await stat(disk)).size, SIZE_BYTES);
  let readBytes = 0;
  await digestFile(image, 'sha256', { signal, onBytes: (doneBytes) => (readBytes = doneBytes) });
  assert.equal(readBytes, SIZE_BYTES);
});

test('a truncated image fails when it is written and when its digest is computed', async (t) => {
  const { file, disk, image } = await prepare(t);
  await truncate(file, MIB);
  await assert.rejects(
    writeImage(image, disk, signal, () => undefined),
    unreadable,
  );
  await assert.rejects(digestFile(image, 'sha256', { signal }), unreadable);
});

test('a raw image larger than the disk is refused before the job, and images of other formats are not', async () => {
  const judge = async (head: string, osImageFormat: 'raw' | 'qcow2' | null): Promise<void> => {
    const path = join(dir, 'judged.img');
    await writeFile(path, Buffer.from(head, 'hex'));
    await truncate(path, SIZE_BYTES);
    const disks = [{ sizeBytes: 2 * MIB }] as InstanceRecord['disks'];
    await refuseOversizedImage({ path, sizeBytes: SIZE_BYTES }, { osImageFormat, disks });
    const large = [{ sizeBytes: SIZE_BYTES }] as InstanceRecord['disks'];
    await refuseOversizedImage({ path, sizeBytes: SIZE_BYTES }, { osImageFormat, disks: large });
  };
  const bootSector = `${'00'.repeat(510)}55aa`;
  for (const [head, format] of [
    [bootSector, null],
    [bootSector, 'raw'],
    ['00', 'raw'],
  ] as const)
    await assert.rejects(judge(head, format), { code: 'IMAGE_TOO_LARGE' });
  for (const [head, format] of [
    ['00', null],
    ['514649fb', null],
    [bootSector, 'qcow2'],
    [`1f8b08${bootSector.slice(6)}`, null],
    ['28b52ffd', 'raw'],
  ] as const)
    await judge(head, format);
});
