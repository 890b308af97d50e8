import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createImageCache, type ImageCacheOptions } from '../../../noded/images/image-cache.ts';
import { startImageServer } from './image-server.ts';

const content = randomBytes(300_000);
const sha256 = createHash('sha256').update(content).digest('hex');
const sha512 = createHash('sha512').update(content).digest('hex');
const { signal } = new AbortController();
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-images-'));
});
after(() => rm(directory, { recursive: true }));

async function newCache(options: Partial<ImageCacheOptions> = {}) {
  const dir = options.dir ?? (await mkdtemp(join(directory, 'cache-')));
  const cache = createImageCache({
    dir,
    maxBytes: 1e9,
    logger: silentLogger,
    clock: systemClock,
    retryDelayMs: 1,
    ...options,
  });
  const names = async () => (await readdir(dir)).sort();
  return { cache, dir, names };
}

const fails = (code: ErrorCode, pattern: RegExp) => (error: unknown) => {
  assert.ok(isAppError(error), String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};

test('an absolute path is used in place, and noticed when it changes', async () => {
  const { cache, names } = await newCache();
  const path = join(directory, 'local.raw');
  await writeFile(path, content);
  const image = await cache.fetch(path, { signal });
  assert.deepEqual([image.path, image.sizeBytes, image.sha256], [path, content.length, null]);
  await image.verifyUnchanged();
  await writeFile(path, content);
  await assert.rejects(image.verifyUnchanged(), fails('IMAGE_UNREADABLE', /changed or replaced/));
  const progress: number[] = [];
  const checked = await cache.fetch(path, {
    signal,
    checksum: `sha256:${sha256}`,
    onProgress: (done) => progress.push(done),
  });
  assert.equal(checked.sha256, sha256);
  assert.equal(progress.at(-1), content.length);
  await cache.fetch(path, { signal, checksum: `sha512:${sha512}` });
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

test('a URL becomes a whole file of root alone, with progress', async () => {
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

test('however many wait, one request brings the image to all of them', async () => {
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

test('one who leaves does not stop the others; the last one does', async () => {
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
  // The next one starts while the old one still ends.
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
  // Bytes that were on their way when the connection was cut are asked for again.
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

test('a cut download starts over when the server cannot continue it', async () => {
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

test('a file that is replaced between two attempts is never mixed with the old one', async () => {
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

test('a download goes on where the noded before it was killed', async () => {
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

test('a server that always stops early is a truncated download with both sizes, and nothing is taken for whole', async () => {
  const { cache, names } = await newCache();
  await using server = await startImageServer({ content, cutAfter: 70_000, cuts: 1000 });
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('DOWNLOAD_TRUNCATED', /ended after \d{5} of 300000 bytes/),
  );
  assert.equal(server.requests.length, 5);
  assert.deepEqual(await names(), []);
});

test('a chunked answer that is cut is not whole either', async () => {
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

test('an HTTP error or a web page never becomes an image; errors name status and URL, no credentials', async () => {
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

test('a server that is not there is named', async () => {
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

test('redirections are followed a few times, never to a link-local address or another protocol', async () => {
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
    ['file:///etc/passwd', /file: is not followed/],
    ['gopher://x/', /gopher: is not followed/],
    [server.url, /more than 10 times/],
    ['http://', /redirects to nowhere/],
  ] as const) {
    location = to;
    await assert.rejects(
      cache.fetch(server.url, { signal }),
      fails('DOWNLOAD_FAILED', pattern),
      to,
    );
  }
});

test('an unchanged image is not fetched again, a changed one is', async () => {
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

test('a wrong checksum keeps nothing, and says both', async () => {
  const { cache, names } = await newCache();
  await using server = await startImageServer({ content });
  await assert.rejects(
    cache.fetch(server.url, { signal, checksum: `sha512:${'0'.repeat(128)}` }),
    fails('IMAGE_CHECKSUM_MISMATCH', new RegExp(`${sha512}, expected 0{128}`)),
  );
  assert.deepEqual(await names(), ['index.json']);
});

test('a cached file that was touched is checked, a damaged one is fetched again', async () => {
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

test('the least recently used images go first, one in use never', async () => {
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

test('too little free disk is refused before the download, a full disk leaves nothing', async () => {
  const dir = join(directory, 'small');
  await mkdir(dir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', dir]);
  try {
    const { cache, names } = await newCache({ dir });
    await using server = await startImageServer({ content: Buffer.alloc(30_000_000) });
    await assert.rejects(
      cache.fetch(server.url, { signal }),
      fails('DISK_SPACE', /needs 30000000 bytes in .*small, where \d+ are free/),
    );
    assert.deepEqual(await names(), []);
    // Without a length it is noticed on the way only.
    Object.assign(server.options, {
      chunked: true,
      etag: '"v1"',
      content: Buffer.alloc(100_000_000),
    });
    await assert.rejects(cache.fetch(server.url, { signal }), fails('DISK_FULL', /became full/));
    assert.deepEqual(await names(), []);
  } finally {
    execFileSync('umount', [dir]);
  }
});

test('room is made by dropping unused images', async () => {
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
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=127.0.0.1',
      '-addext',
      'subjectAltName=IP:127.0.0.1',
      '-keyout',
      key,
      '-out',
      cert,
    ],
    { stdio: 'ignore' },
  );
  const tls = { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  await using server = await startImageServer({ content, tls });
  const { cache } = await newCache();
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('DOWNLOAD_FAILED', /self-signed/),
  );
  const { cache: trusting } = await newCache({ certificateAuthority: tls.cert });
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

test('a damaged index costs a download, never a wrong image', async () => {
  const { cache, dir } = await newCache();
  await using server = await startImageServer({ content, etag: '"v1"' });
  await cache.fetch(server.url, { signal });
  await cache.close();
  await writeFile(join(dir, 'index.json'), '{"schema":1,"contents":');
  const { cache: next } = await newCache({ dir });
  assert.equal((await next.fetch(server.url, { signal })).sha256, sha256);
});
