import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { makeOwnAuthority } from '../../../lab/own-authority.ts';
import { startImageServer } from './image-server.ts';
import { content, sha256, sha512, directory, newCache, fails, signal } from './image-cache-lab.ts';

test('a URL is downloaded whole to a file with mode 0600, with progress', async () => {
  const { cache, dir, names } = await newCache();
  await using server = await startImageServer({ content });
  const progress: [number, number | null][] = [];
  const image = await cache.fetch(server.url, {
    signal,
    checksum: `sha512:${sha512}`,
    onProgress: (done, total) => progress.push([done, total]),
  });
  assert.equal(image.sha256, sha256);
  assert.ok((await readFile(image.path)).equals(content));
  assert.equal((await stat(image.path)).mode & 0o777, 0o600);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  assert.deepEqual(progress.at(-1), [content.length, content.length]);
  assert.deepEqual(await names(), ['index.json', `sha256-${sha256}`]);
  await image.verifyUnchanged();
  image.release();
});

test('one request serves all waiting fetches of an image', async () => {
  const { cache } = await newCache();
  const gate = Promise.withResolvers<void>();
  await using server = await startImageServer({ content, gate: gate.promise });
  const waits: string[] = [];
  const progress = [0, 0, 0, 0];
  const fetches = progress.map((_, index) =>
    cache.fetch(server.url, {
      signal,
      onProgress: (done) => (progress[index] = done),
      onWait: (message) => waits.push(message),
    }),
  );
  while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  gate.resolve();
  const images = await Promise.all(fetches);
  assert.equal(new Set(images.map(({ path }) => path)).size, 1);
  assert.equal(server.requests.length, 1);
  assert.deepEqual(progress, Array(4).fill(content.length));
  assert.equal(waits.length, 3);
});

test('a canceled fetch does not stop another fetch, and the last canceled fetch ends the download', async () => {
  const { cache } = await newCache();
  const gate = Promise.withResolvers<void>();
  await using server = await startImageServer({ content, etag: '"v1"', gate: gate.promise });
  const [first, second] = [new AbortController(), new AbortController()];
  const reason = new Error('canceled');
  const leaving = cache.fetch(server.url, { signal: first.signal });
  const staying = cache.fetch(server.url, { signal: second.signal });
  while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  first.abort(reason);
  await assert.rejects(leaving, reason);
  gate.resolve();
  assert.equal((await staying).sha256, sha256);

  server.options.content = randomBytes(300_000);
  server.options.etag = '"v2"';
  const gate2 = Promise.withResolvers<void>();
  server.options.gate = gate2.promise;
  const alone = new AbortController();
  const canceled = cache.fetch(server.url, {
    signal: alone.signal,
    onProgress: (done) => done > 0 && alone.abort(reason),
  });
  await assert.rejects(canceled, reason);
  // The next download starts while the old one ends.
  gate2.resolve();
  const again = await cache.fetch(server.url, { signal });
  assert.ok((await readFile(again.path)).equals(server.options.content));
  assert.equal((await cache.stats()).downloadsRunning, 0);
});

test('a cut download is continued by Range when the server can', async () => {
  const { cache } = await newCache();
  await using server = await startImageServer({ content, etag: '"v1"', cutAfter: 70_000, cuts: 3 });
  const waits: string[] = [];
  const image = await cache.fetch(server.url, { signal, onWait: (text) => waits.push(text) });
  assert.ok((await readFile(image.path)).equals(content));
  // Bytes in flight when the connection was cut are requested again.
  const starts = server.requests.map(({ headers }) => Number(headers.range?.slice(6, -1) ?? 0));
  assert.equal(starts.length, 4);
  assert.deepEqual(
    starts,
    [...starts].sort((a, b) => a - b),
  );
  assert.ok((starts[3] ?? 0) > 70_000, String(starts));
  assert.deepEqual(server.requests[3]?.headers['if-range'], '"v1"');
  assert.equal(waits.length, 3);
});

test('a cut download restarts when the server cannot resume it', async () => {
  for (const options of [
    { etag: '"v1"', ranges: false },
    { etag: 'W/"weak"' },
    { etag: undefined },
    { lastModified: 'Sat, 21 Nov 2026 00:00:00 GMT', ranges: false },
  ]) {
    const { cache } = await newCache();
    await using server = await startImageServer({ content, cutAfter: 70_000, cuts: 2, ...options });
    const image = await cache.fetch(server.url, { signal });
    assert.ok((await readFile(image.path)).equals(content), JSON.stringify(options));
  }
});

test('a file that is replaced between two attempts is not mixed with the old file', async () => {
  const { cache } = await newCache();
  const next = randomBytes(200_000);
  await using server = await startImageServer({ content, etag: '"v1"', cutAfter: 70_000, cuts: 1 });
  server.options.intercept = () => {
    if (server.requests.length === 2)
      Object.assign(server.options, { content: next, etag: '"v2"' });
    return false;
  };
  const image = await cache.fetch(server.url, { signal });
  assert.ok((await readFile(image.path)).equals(next));
});

test('a download is resumed by a new cache', async () => {
  const { cache, dir } = await newCache();
  await using server = await startImageServer({ content, etag: '"v1"' });
  const gate = Promise.withResolvers<void>();
  server.options.gate = gate.promise;
  const controller = new AbortController();
  const running = cache.fetch(server.url, {
    signal: controller.signal,
    onProgress: (done) => done > 0 && controller.abort(new Error('stop')),
  });
  await assert.rejects(running, /stop/);
  await cache.close();
  delete server.options.gate;
  gate.resolve();
  const next = await newCache({ dir });
  const waits: string[] = [];
  const image = await next.cache.fetch(server.url, { signal, onWait: (text) => waits.push(text) });
  assert.ok((await readFile(image.path)).equals(content));
  assert.match(server.requests.at(-1)?.headers.range ?? '', /^bytes=[1-9]/);
  assert.match(waits[0] ?? '', /resuming the download at byte [1-9]/);
});

test('a truncated download is an error with both sizes after five attempts, and no file is kept', async () => {
  const { cache, names } = await newCache();
  await using server = await startImageServer({ content, cutAfter: 70_000, cuts: 1000 });
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('DOWNLOAD_TRUNCATED', /ended after \d{5} of 300000 bytes/),
  );
  assert.equal(server.requests.length, 5);
  assert.deepEqual(await names(), []);
});

test('a cut chunked answer is retried, and is an error when it is always cut', async () => {
  const { cache } = await newCache();
  await using server = await startImageServer({
    content,
    chunked: true,
    cutAfter: 70_000,
    cuts: 2,
  });
  const image = await cache.fetch(server.url, { signal });
  assert.ok((await readFile(image.path)).equals(content));
  server.options.cuts = 1000;
  await assert.rejects(cache.fetch(server.url, { signal }), (error) => isAppError(error));
});

test('an HTTP error or a web page is an error with status and URL, and without credentials', async () => {
  const { cache, names } = await newCache();
  await using server = await startImageServer({ content });
  const url = `http://joe:hunter22@127.0.0.1:${server.port}/image?X-Amz-Signature=abc123&name=debian`;
  const isClean = (error: unknown): boolean =>
    isAppError(error) &&
    !/hunter22|joe|abc123/.test(JSON.stringify([error.message, error.details, error.hint]));
  for (const [status, attempts] of [
    [404, 1],
    [403, 1],
    [401, 1],
    [410, 1],
    [503, 5],
    [429, 5],
  ] as const) {
    server.requests.length = 0;
    server.options.intercept = (_, response) => {
      response.writeHead(status, { 'content-type': 'text/html' }).end('<html>oops</html>');
      return true;
    };
    await assert.rejects(
      cache.fetch(url, { signal }),
      (error) =>
        fails(
          'DOWNLOAD_FAILED',
          new RegExp(`127\\.0\\.0\\.1.*image.*name=debian.*${status}`),
        )(error) && isClean(error),
    );
    assert.equal(server.requests.length, attempts, String(status));
  }
  server.options.intercept = (_, response) => {
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      .end('<html>log in</html>');
    return true;
  };
  await assert.rejects(cache.fetch(url, { signal }), fails('DOWNLOAD_FAILED', /web page/));
  assert.deepEqual(await names(), []);
});

test('an unreachable server is named in the error', async () => {
  const { cache } = await newCache();
  const server = await startImageServer({ content });
  await server[Symbol.asyncDispose]();
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('DOWNLOAD_FAILED', new RegExp(`${server.port}.*ECONNREFUSED`)),
  );
  await assert.rejects(
    cache.fetch('http://does-not-exist.invalid/x', { signal }),
    fails('DOWNLOAD_FAILED', /does-not-exist.invalid/),
  );
});

test('redirections are followed up to a limit, and not to a link-local address or another protocol', async () => {
  const { cache } = await newCache();
  await using target = await startImageServer({ content });
  await using server = await startImageServer({ content });
  let location = target.url;
  server.options.intercept = (_, response) => {
    response.writeHead(302, { location }).end();
    return true;
  };
  const netrcFile = join(directory, 'netrc');
  await writeFile(netrcFile, '');
  const withLogin = server.url.replace('//', '//joe:hunter22@');
  const image = await cache.fetch(withLogin, { signal });
  assert.ok((await readFile(image.path)).equals(content));
  assert.match(server.requests[0]?.headers.authorization ?? '', /^Basic /);
  assert.equal(target.requests[0]?.headers.authorization, undefined, 'credentials went along');
  for (const [to, pattern] of [
    ['http://169.254.169.254/latest/user-data', /link-local/],
    ['http://[fe80::a9fe:a9fe]/', /link-local/],
    ['file:///etc/passwd', /redirects to file: are not followed/],
    ['gopher://x/', /redirects to gopher: are not followed/],
    [server.url, /more than 10 times/],
    ['http://', /the redirect has no target/],
  ] as const) {
    location = to;
    await assert.rejects(
      cache.fetch(server.url, { signal }),
      fails('DOWNLOAD_FAILED', pattern),
      to,
    );
  }
});

test('a login comes from a netrc file, for its host only', async () => {
  const netrcFile = join(directory, 'netrc-login');
  await writeFile(
    netrcFile,
    'machine other.example login x password y\nmachine 127.0.0.1\n  login joe\n  password s3cret\n',
  );
  await chmod(netrcFile, 0o600);
  const { cache } = await newCache({ netrcFile });
  await using server = await startImageServer({ content });
  await cache.fetch(server.url, { signal });
  const expected = `Basic ${Buffer.from('joe:s3cret').toString('base64')}`;
  assert.equal(server.requests[0]?.headers.authorization, expected);
});

test('TLS is checked against the trusted certificates', async () => {
  const tls = await makeOwnAuthority(directory);
  await using server = await startImageServer({ content, tls });
  const { cache } = await newCache();
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('DOWNLOAD_FAILED', /self-signed/),
  );
  const { cache: trusting } = await newCache({
    limits: async () => downloadLimitsOf({ imageCa: tls.cert }),
  });
  assert.equal((await trusting.fetch(server.url, { signal })).sha256, sha256);
  server.options.intercept = (_, response) => {
    response.writeHead(302, { location: 'http://127.0.0.1/plain' }).end();
    return true;
  };
  await assert.rejects(
    trusting.fetch(server.url, { signal }),
    fails('DOWNLOAD_FAILED', /from https to http/),
  );
});
