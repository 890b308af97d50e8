import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { startImageServer } from './image-server.ts';
import { content, sha256, sha512, directory, newCache, fails, signal } from './image-cache-lab.ts';

test('a local image is used in place, and a change of the file is an error', async () => {
  const { cache, names } = await newCache();
  const path = join(directory, 'local.raw');
  await writeFile(path, content);
  const image = await cache.fetch(path, { signal });
  assert.deepEqual([image.sizeBytes, image.sha256], [content.length, null]);
  await image.verifyUnchanged();
  await writeFile(path, content);
  await assert.rejects(
    image.verifyUnchanged(),
    fails('IMAGE_UNREADABLE', /changed while it was used/),
  );
  image.release();
  const kept = await cache.fetch(path, { signal });
  await rename(path, `${path}.old`);
  await symlink('/etc/shadow', path);
  assert.ok((await readFile(kept.path)).equals(content), 'what was put in its place was read');
  await kept.verifyUnchanged();
  kept.release();
  await rename(`${path}.old`, path);
  const progress: number[] = [];
  const checked = await cache.fetch(path, {
    signal,
    checksum: `sha256:${sha256}`,
    onProgress: (done) => progress.push(done),
  });
  assert.equal(checked.sha256, sha256);
  checked.release();
  assert.equal(progress.at(-1), content.length);
  (await cache.fetch(path, { signal, checksum: `sha512:${sha512}` })).release();
  await assert.rejects(
    cache.fetch(path, { signal, checksum: `sha256:${'0'.repeat(64)}` }),
    (error) =>
      fails('IMAGE_CHECKSUM_MISMATCH', new RegExp(`${sha256}, expected 0000`))(error) &&
      isAppError(error) &&
      error.details['actual'] === sha256,
  );
  assert.deepEqual(await names().catch(() => []), [], 'a local file was copied');
});

test('each unusable source is refused by name before anything is done', async () => {
  const { cache } = await newCache();
  const at = async (source: string, code: ErrorCode, pattern: RegExp): Promise<void> => {
    await assert.rejects(cache.check(source), fails(code, pattern), source);
    await assert.rejects(cache.fetch(source, { signal }), fails(code, pattern), source);
  };
  await at(join(directory, 'nowhere'), 'IMAGE_NOT_FOUND', /Image '.*nowhere' not found/);
  await at(join(directory, 'local.raw', 'x'), 'IMAGE_NOT_FOUND', /not found/);
  await at(directory, 'IMAGE_UNREADABLE', /is a directory/);
  await writeFile(join(directory, 'empty'), '');
  await at(join(directory, 'empty'), 'IMAGE_UNREADABLE', /is empty/);
  execFileSync('mkfifo', [join(directory, 'fifo')]);
  await at(join(directory, 'fifo'), 'IMAGE_UNREADABLE', /not a regular file/);
  for (const source of [
    'debian.qcow2',
    './x',
    '',
    'file:///etc/passwd',
    'ssh://h/x',
    'http:x',
    'http://',
  ]) {
    await at(source, 'IMAGE_SOURCE', /must be an absolute path or a URL/);
  }
  for (const host of [
    '169.254.169.254',
    '[fe80::1]',
    '[::ffff:169.254.1.1]',
    '2852039166',
    '[fd00:ec2::254]',
  ]) {
    await at(`http://${host}/latest/meta-data`, 'IMAGE_SOURCE', /link-local/);
  }
  await assert.rejects(
    cache.fetch('/x', { signal, checksum: 'md5:00' }),
    fails('IMAGE_SOURCE', /'md5:00' is not a checksum/),
  );
});

test('an unchanged image is not downloaded again, and a changed image is', async () => {
  for (const version of [{ etag: '"v1"' }, { lastModified: 'Sat, 21 Nov 2026 00:00:00 GMT' }]) {
    const { cache, names } = await newCache();
    await using server = await startImageServer({ content, ...version });
    const first = await cache.fetch(server.url, { signal });
    const second = await cache.fetch(server.url, { signal });
    assert.equal(second.path, first.path);
    const condition = server.requests[1]?.headers;
    assert.ok(condition?.['if-none-match'] ?? condition?.['if-modified-since']);
    const next = randomBytes(1000);
    Object.assign(server.options, {
      content: next,
      ...(version.etag ? { etag: '"v2"' } : { lastModified: 'Sun, 22 Nov 2026 00:00:00 GMT' }),
    });
    const third = await cache.fetch(server.url, { signal });
    assert.ok((await readFile(third.path)).equals(next));
    assert.equal((await names()).filter((name) => name.startsWith('sha256-')).length, 2);
  }
});

test('with its checksum a cached image needs no server, also after a restart', async () => {
  const { cache, dir } = await newCache();
  await using server = await startImageServer({ content });
  (await cache.fetch(server.url, { signal, checksum: `sha512:${sha512}` })).release();
  await cache.close();
  const { cache: next } = await newCache({ dir });
  for (const checksum of [`sha256:${sha256}`, `sha512:${sha512}`]) {
    const image = await next.fetch('http://gone.invalid/image', { signal, checksum });
    assert.equal(image.sha256, sha256);
  }
  assert.equal(server.requests.length, 1);
});

test('an image with a wrong checksum is removed, and the error has both checksums', async () => {
  const { cache, names } = await newCache();
  await using server = await startImageServer({ content });
  await assert.rejects(
    cache.fetch(server.url, { signal, checksum: `sha512:${'0'.repeat(128)}` }),
    fails('IMAGE_CHECKSUM_MISMATCH', new RegExp(`${sha512}, expected 0{128}`)),
  );
  assert.deepEqual(await names(), ['index.json']);
});

test('a cached file with a new modification time is verified, and a damaged file is downloaded again', async () => {
  const { cache } = await newCache();
  await using server = await startImageServer({ content, etag: '"v1"' });
  const image = await cache.fetch(server.url, { signal });
  await writeFile(image.path, content);
  await cache.fetch(server.url, { signal });
  assert.equal(server.requests[1]?.headers['if-none-match'], '"v1"');
  await writeFile(image.path, Buffer.alloc(content.length));
  await assert.rejects(image.verifyUnchanged(), fails('IMAGE_UNREADABLE', /was changed/));
  const again = await cache.fetch(server.url, { signal });
  assert.ok((await readFile(again.path)).equals(content));
  await truncate(again.path, 10);
  await cache.fetch(server.url, { signal, checksum: `sha256:${sha256}` });
  await rm(again.path);
  const last = await cache.fetch(server.url, { signal });
  assert.ok((await readFile(last.path)).equals(content));
});

test('the least recently used images are evicted first, and an image in use is not', async () => {
  const { cache, names } = await newCache({ maxBytes: 250_000 });
  const hold: Record<string, () => void> = {};
  const fetchOne = async (name: string): Promise<string> => {
    await using server = await startImageServer({ content: Buffer.alloc(100_000, name) });
    const image = await cache.fetch(server.url, { signal });
    hold[name] = () => image.release();
    return `sha256-${image.sha256}`;
  };
  const kept = async (): Promise<string[]> => {
    await cache.close();
    return (await names()).filter((name) => name.startsWith('sha256-'));
  };
  const a = await fetchOne('a');
  hold['a']?.();
  const b = await fetchOne('b');
  const c = await fetchOne('c');
  hold['c']?.();
  assert.deepEqual(await kept(), [b, c].sort(), `${a} should be gone`);
  await fetchOne('d');
  await fetchOne('e');
  hold['e']?.();
  hold['e']?.();
  assert.ok((await kept()).includes(b), 'one in use was evicted');
});

test('a download is refused with too little free disk, and is stopped without a file before the disk is full', async () => {
  const dir = join(directory, 'small');
  await mkdir(dir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', dir]);
  try {
    const { cache, names } = await newCache({ dir });
    await using server = await startImageServer({ content: Buffer.alloc(30_000_000) });
    await assert.rejects(
      cache.fetch(server.url, { signal }),
      fails('DISK_SPACE', /needs 30000000 bytes in .*small, \d+ are free/),
    );
    assert.deepEqual(await names(), []);
    // Without a length it is noticed during the transfer, before the disk is full.
    Object.assign(server.options, {
      chunked: true,
      etag: '"v1"',
      content: Buffer.alloc(100_000_000),
    });
    let leastFree = Number.POSITIVE_INFINITY;
    const watched = cache.fetch(server.url, {
      signal,
      onProgress: () => {
        const { bavail, bsize } = statfsSync(dir);
        leastFree = Math.min(leastFree, bavail * bsize);
      },
    });
    await assert.rejects(watched, fails('DISK_FULL', /became full/));
    assert.ok(leastFree > 50e6, `the host had ${leastFree} bytes left`);
    assert.deepEqual(await names(), []);
  } finally {
    execFileSync('umount', [dir]);
  }
});

test('unused images are removed when disk space is low', async () => {
  const dir = join(directory, 'tight');
  await mkdir(dir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128m', 'tmpfs', dir]);
  try {
    const { cache, names } = await newCache({ dir });
    for (const [name, size] of [
      ['a', 40e6],
      ['b', 50e6],
    ] as const) {
      await using server = await startImageServer({ content: Buffer.alloc(size, name) });
      (await cache.fetch(server.url, { signal })).release();
    }
    await cache.close();
    assert.equal((await names()).filter((name) => name.startsWith('sha256-')).length, 1);
  } finally {
    execFileSync('umount', [dir]);
  }
});

test('an image is right after its index is damaged', async () => {
  const { cache, dir } = await newCache();
  await using server = await startImageServer({ content, etag: '"v1"' });
  await cache.fetch(server.url, { signal });
  await cache.close();
  await writeFile(join(dir, 'index.json'), '{"schema":1,"contents":');
  const { cache: next } = await newCache({ dir });
  assert.equal((await next.fetch(server.url, { signal })).sha256, sha256);
});

test('files outside of the index count, are evicted first, and are used only with the right checksum', async () => {
  const { cache, dir, names } = await newCache();
  await using server = await startImageServer({ content });
  (await cache.fetch(server.url, { signal })).release();
  await cache.close();
  // As left by a daemon that ends between writing the file and the index.
  await rm(join(dir, 'index.json'));
  const broken = `sha256-${'0'.repeat(64)}`;
  await writeFile(join(dir, broken), 'half of something');
  const { cache: next } = await newCache({ dir, maxBytes: 310_000 });
  assert.equal((await next.stats()).sizeBytes, content.length + 'half of something'.length);
  const checksum = `sha256:${sha256}`;
  const image = await next.fetch('http://gone.invalid/image', { signal, checksum });
  assert.equal(image.sha256, sha256);
  image.release();
  const wrong = next.fetch('http://127.0.0.1:1/image', {
    ...{ signal, checksum: `sha256:${'0'.repeat(64)}` },
  });
  await assert.rejects(wrong, fails('DOWNLOAD_FAILED', /./));
  await using other = await startImageServer({ content: Buffer.alloc(200_000, 'x') });
  (await next.fetch(other.url, { signal })).release();
  await next.close();
  const left = (await names()).filter((name) => name.startsWith('sha256-'));
  assert.equal(left.length, 1, `${String(left)}: 310,000 bytes are one of them`);
});
