import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import {
  openPackage,
  validatePackageUrl,
} from '../../../../noded/content/downloads/package-source.ts';
import { startImageServer } from '../images/image-server.ts';

const content = randomBytes(3_000_000);
const { signal } = new AbortController();
const options = { signal, retryDelayMs: 1, limits: downloadLimitsOf({}) };
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-package-'));
});
after(() => rm(directory, { recursive: true }));

const urlOf = (server: { url: string }): string => server.url.replace('/image', '/site.tar.gz');
const fails = (pattern: RegExp) => (error: unknown) => {
  assert.ok(isAppError(error, 'PACKAGE_DOWNLOAD'), String(error));
  assert.match(error.message, pattern);
  return true;
};

test('accepts only paths and http, https and ftp URLs of gzip tars', () => {
  for (const url of [
    '/srv/x.tar.gz',
    'http://h/x.tgz',
    'https://h:1/a/x.tar.gz?t=1#f',
    'ftp://h/x.tgz',
  ]) {
    validatePackageUrl(url);
  }
  const refuses = (url: string, pattern: RegExp): void =>
    assert.throws(
      () => validatePackageUrl(url),
      (error) =>
        isAppError(error, 'PACKAGE_SOURCE') &&
        pattern.test(error.message) &&
        error.hint !== undefined,
      url,
    );
  refuses('http://h/x.zip', /'\.zip'/);
  refuses('http://h/x.tar', /'\.tar'/);
  refuses('http://h/x.tar.xz', /'\.xz'/);
  refuses('http://h/x?name=x.tar.gz', /'none'/);
  refuses('/srv/.tar.gz', /must end in/);
  refuses('x.tar.gz', /absolute path or a URL/);
  refuses('file:///x.tar.gz', /absolute path or a URL/);
  refuses('http://joe:hunter22@h/x.zip', /^(?!.*hunter22)/);
  refuses('http://169.254.169.254/x.tgz', /link-local/);
});

test('streams a package from a path and from a server, with its size', async () => {
  const path = join(directory, 'x.tar.gz');
  await writeFile(path, content);
  const local = await openPackage(path, options);
  assert.equal(local.sizeBytes, content.length);
  assert.ok((await buffer(local.stream)).equals(content));
  await using server = await startImageServer({ content });
  const remote = await openPackage(urlOf(server), options);
  assert.equal(remote.sizeBytes, content.length);
  assert.ok((await buffer(remote.stream)).equals(content));
  server.options.chunked = true;
  assert.equal((await openPackage(urlOf(server), options)).sizeBytes, null);
});

test('sends user and password to the server, and not to a redirection target', async () => {
  await using server = await startImageServer({ content });
  const login = { user: 'joe', password: new Secret('s3cret:x') };
  await buffer((await openPackage(urlOf(server), { ...options, ...login })).stream);
  const expected = `Basic ${Buffer.from('joe:s3cret:x').toString('base64')}`;
  assert.equal(server.requests[0]?.headers.authorization, expected);
  await using other = await startImageServer({ content });
  server.options.intercept = (_, response) => {
    response.writeHead(302, { location: urlOf(other) }).end();
    return true;
  };
  await buffer((await openPackage(urlOf(server), { ...options, ...login })).stream);
  assert.equal(other.requests[0]?.headers.authorization, undefined);
});

test('a refused download fails before the stream with the status and without credentials', async () => {
  await using server = await startImageServer({ content });
  server.options.intercept = (_, response) => {
    response.writeHead(401).end();
    return true;
  };
  await assert.rejects(
    openPackage(urlOf(server).replace('//', '//joe:hunter22@'), options),
    (error) =>
      fails(/site\.tar\.gz.*status 401/)(error) && !JSON.stringify(error).includes('hunter22'),
  );
  await assert.rejects(openPackage(join(directory, 'no.tgz'), options), fails(/ENOENT/));
  execFileSync('mkfifo', [join(directory, 'fifo.tgz')]);
  await assert.rejects(openPackage(join(directory, 'fifo.tgz'), options), fails(/regular file/));
});

test('a cut connection is resumed when the server has an ETag', async () => {
  for (const ranges of [true, false]) {
    await using server = await startImageServer({
      content,
      etag: '"v1"',
      ranges,
      cutAfter: 900_000,
      cuts: 2,
    });
    const { stream } = await openPackage(urlOf(server), options);
    assert.ok((await buffer(stream)).equals(content), `ranges: ${ranges}`);
    assert.equal(server.requests.length, 3);
  }
});

test('a cut connection that cannot be continued is an error of the stream, never an end', async () => {
  await using server = await startImageServer({ content, cutAfter: 900_000, cuts: 1 });
  const { stream } = await openPackage(urlOf(server), options);
  await assert.rejects(buffer(stream), fails(/cannot be resumed/));
});

test('a slow reader limits the buffered bytes, and a destroyed stream ends the download', async () => {
  const large = Buffer.alloc(64 * 1024 * 1024);
  await using server = await startImageServer({ content: large });
  const { stream } = await openPackage(urlOf(server), options);
  await new Promise((resolve) => stream.once('readable', resolve));
  assert.ok(stream.readableLength <= 1024 * 1024, `${stream.readableLength} bytes are buffered`);
  const closed = new Promise((resolve) => server.requests[0]?.socket.once('close', resolve));
  stream.destroy();
  await closed;
});

test('canceling ends the stream with the reason', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await startImageServer({ content, gate: gate.promise });
  const controller = new AbortController();
  const { stream } = await openPackage(urlOf(server), { ...options, signal: controller.signal });
  const reason = new Error('canceled');
  const reading = buffer(stream);
  controller.abort(reason);
  await assert.rejects(reading, reason);
  gate.resolve();
});
