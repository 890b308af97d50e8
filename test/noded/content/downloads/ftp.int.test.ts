import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { Secret } from '#shared/secret/secret.ts';
import { ImageCache } from '../../../../noded/content/images/image-cache.ts';
import { openPackage } from '../../../../noded/content/downloads/package-source.ts';
import { startFtpServer } from './ftp-server.ts';

const content = randomBytes(400_000);
const modified = '20261121000000';
const { signal } = new AbortController();
const limits = async () => downloadLimitsOf({});
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-ftp-'));
});
after(() => rm(directory, { recursive: true }));

async function newCache(netrcFile?: string): Promise<ImageCache> {
  return new ImageCache({
    dir: await mkdtemp(join(directory, 'cache-')),
    maxBytes: 1e9,
    limits,
    logger: silentLogger,
    clock: systemClock,
    retryDelayMs: 1,
    netrcFile,
  });
}

test('an image is downloaded by FTP, and again only when it changes', async () => {
  await using server = await startFtpServer({ content, modified });
  const cache = await newCache();
  const progress: [number, number | null][] = [];
  const first = await cache.fetch(server.url, {
    signal,
    onProgress: (done, total) => progress.push([done, total]),
  });
  assert.ok((await readFile(first.path)).equals(content));
  assert.deepEqual(progress.at(-1), [content.length, content.length]);
  const downloads = (): number => server.commands.filter((line) => line.startsWith('RETR')).length;
  await cache.fetch(server.url, { signal });
  assert.equal(downloads(), 1);
  server.options.modified = '20261122000000';
  await cache.fetch(server.url, { signal });
  assert.equal(downloads(), 2);
});

test('a cut FTP download is continued', async () => {
  await using server = await startFtpServer({ content, modified, cutAfter: 150_000, cuts: 2 });
  const image = await (await newCache()).fetch(server.url, { signal });
  assert.ok((await readFile(image.path)).equals(content));
  assert.ok(server.commands.includes('REST 150000'), server.commands.join());
});

test('a login for FTP comes from the URL or a netrc file, and a refused login is not shown', async () => {
  const login = { user: 'joe', password: 'pa"ss\\word' };
  await using server = await startFtpServer({ content, modified, login });
  const withLogin = server.url.replace('//', `//joe:${encodeURIComponent(login.password)}@`);
  await (await newCache()).fetch(withLogin, { signal });
  const netrcFile = join(directory, 'netrc');
  await writeFile(netrcFile, `machine 127.0.0.1 login joe password ${login.password}\n`);
  await (await newCache(netrcFile)).fetch(server.url, { signal });
  await assert.rejects(
    (await newCache()).fetch(server.url.replace('//', '//joe:hunter22@'), { signal }),
    (error) =>
      isAppError(error, 'DOWNLOAD_FAILED') &&
      error.message.includes('refused the login') &&
      !JSON.stringify([error.message, error.details]).includes('hunter22'),
  );
});

test('a missing file and a canceled download leave nothing', async () => {
  await using server = await startFtpServer({ content, modified });
  const dir = await mkdtemp(join(directory, 'cache-'));
  const cache = new ImageCache({
    dir,
    maxBytes: 1e9,
    limits,
    logger: silentLogger,
    clock: systemClock,
  });
  await assert.rejects(
    cache.fetch(server.url.replace('image.raw', 'other.raw'), { signal }),
    (error) => isAppError(error, 'DOWNLOAD_FAILED') && error.message.includes('other.raw'),
  );
  assert.deepEqual(await readdir(dir), []);
});

test('a package is requested by FTP with its own login, and a refused login is an error', async () => {
  const login = { user: 'joe', password: 's3cret' };
  await using server = await startFtpServer({ content, modified, login });
  // The server has one file only; its name ends as required.
  const url = server.url.replace('image.raw', 'x.tar.gz');
  await assert.rejects(
    openPackage(url, {
      user: 'joe',
      password: new Secret('s3cret'),
      signal,
      retryDelayMs: 1,
      limits: downloadLimitsOf({}),
    }),
    (error) =>
      isAppError(error, 'PACKAGE_DOWNLOAD') && /no such file|refused the file/.test(error.message),
  );
  await assert.rejects(
    openPackage(url, {
      user: 'joe',
      password: new Secret('wrong-one'),
      signal,
      retryDelayMs: 1,
      limits: downloadLimitsOf({}),
    }),
    (error) =>
      isAppError(error, 'PACKAGE_DOWNLOAD') &&
      /refused the login/.test(error.message) &&
      !error.message.includes('wrong-one'),
  );
});
