import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { isAppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { compressDisk, expandDisk } from '../../../noded/storage/compressed-disk.ts';

let dir = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-compressed-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const SIZE = 64 * MIB + 512;
const { signal } = new AbortController();
const file = (name: string): string => join(dir, name);
let expanded = 0;
const expand = async (
  from: string,
  sizeBytes = SIZE,
  checkSpace = () => Promise.resolve(),
): Promise<string> => {
  const to = file(`expanded${++expanded}`);
  const request = { from, shown: 'disk0.raw.zst', to, sizeBytes, checkSpace };
  await expandDisk(request, signal, () => undefined);
  return to;
};

test('a disk comes back with its bytes, its length and its holes', async () => {
  await using disk = await open(file('disk'), 'wx');
  await disk.truncate(SIZE);
  for (const at of [0, 4096 * 3 + 7, 30 * MIB - 1, SIZE - 3])
    await disk.write(randomBytes(3), 0, 3, at);
  // Written zeros are compressed like a hole.
  await disk.write(Buffer.alloc(MIB), 0, MIB, 40 * MIB);
  await compressDisk({ from: file('disk'), to: file('disk.zst') }, signal, () => undefined);
  assert.ok((await stat(file('disk.zst'))).size < MIB / 8);
  const back = await expand(file('disk.zst'));
  assert.ok((await readFile(back)).equals(await readFile(file('disk'))));
  assert.ok((await stat(back)).blocks * 512 <= 6 * 4096);
  assert.equal((await stat(back)).mode & 0o777, 0o600);
});

test('what is cut off, changed, longer or shorter than its disk is refused by name', async () => {
  const content = randomBytes(MIB);
  const whole = zstdCompressSync(content, { params: { 201: 1 } });
  const changed = Buffer.from(whole);
  changed[MIB / 2] = (changed[MIB / 2] ?? 0) ^ 1;
  for (const [name, bytes, size] of [
    ['cut', whole.subarray(0, -5), MIB],
    ['changed', changed, MIB],
    ['longer', whole, MIB - 1],
    ['shorter', whole, MIB + 1],
    ['followed', Buffer.concat([whole, Buffer.from('more')]), MIB],
    ['followed by much', Buffer.concat([whole, Buffer.alloc(MIB)]), MIB],
    ['other', Buffer.from('not compressed at all'), MIB],
    ['empty', Buffer.of(), MIB],
  ] as const) {
    await writeFile(file(name), bytes);
    await assert.rejects(
      expand(file(name), size),
      (error) => isAppError(error, 'EXPORT_INVALID') && /^disk0\.raw\.zst has /.test(error.message),
      name,
    );
  }
});

test('a bomb fills no more than its disk', async () => {
  await writeFile(file('bomb'), zstdCompressSync(Buffer.alloc(512 * MIB, 'x')));
  await assert.rejects(expand(file('bomb'), 4096), (error) => isAppError(error, 'EXPORT_INVALID'));
  assert.ok((await stat(file(`expanded${expanded}`))).size <= 4096);
});

test('where there is no more room nothing more is written, whatever was announced', async () => {
  await writeFile(file('full'), zstdCompressSync(Buffer.alloc(256 * MIB, 'x')));
  const full = new Error('full');
  await assert.rejects(
    expand(file('full'), 256 * MIB, () => Promise.reject(full)),
    full,
  );
  assert.ok((await stat(file(`expanded${expanded}`))).blocks * 512 <= 33 * MIB);
  await writeFile(file('holes'), zstdCompressSync(Buffer.alloc(256 * MIB)));
  await expand(file('holes'), 256 * MIB, () => Promise.reject(full));
});

test('a job that is cancelled ends in the middle', async () => {
  await writeFile(file('large'), '');
  await truncate(file('large'), 2 ** 40);
  const cancelled = new AbortController();
  const reason = new Error('cancelled');
  await assert.rejects(
    compressDisk({ from: file('large'), to: file('large.zst') }, cancelled.signal, () =>
      cancelled.abort(reason),
    ),
  );
});
