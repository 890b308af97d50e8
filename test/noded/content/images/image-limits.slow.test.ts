import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { openPackage } from '../../../../noded/content/downloads/package-source.ts';
import { fails, newCache, signal } from './image-cache-lab.ts';
import { startImageServer } from './image-server.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const chunk = Buffer.alloc(64 * 1024, 'x');

/** Starts a server with this listener. */
async function startServer(listener: RequestListener) {
  const server = createServer((request, response) => {
    // An aborted client raises an error that the test ignores.
    response.on('error', () => undefined);
    listener(request, response);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/image`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const limitsOf = (settings: Parameters<typeof downloadLimitsOf>[0]) => async () =>
  downloadLimitsOf(settings);

test('an endless download is stopped at the image size limit, and no file is kept', async () => {
  let sent = 0;
  await using server = await startServer((_, response) => {
    response.setHeader('etag', '"endless"');
    const pour = (): void => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on('drain', pour);
    pour();
  });
  const { cache, names } = await newCache({ limits: limitsOf({ maxImageBytes: 3_000_000 }) });
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('IMAGE_TOO_LARGE', /at least \d+ bytes, the limit is 3000000/),
  );
  assert.ok(sent < 60e6, `${sent} bytes`);
  assert.deepEqual(await names(), []);
});

test('an image whose announced size is beyond the limit is refused', async () => {
  await using server = await startImageServer({ content: randomBytes(300_000) });
  const { cache, names } = await newCache({ limits: limitsOf({ maxImageBytes: 299_999 }) });
  await assert.rejects(
    cache.fetch(server.url, { signal }),
    fails('IMAGE_TOO_LARGE', /has 300000 bytes, the limit is 299999/),
  );
  assert.deepEqual(await names(), []);
  const { cache: larger } = await newCache({ limits: limitsOf({ maxImageBytes: 300_000 }) });
  await larger.fetch(server.url, { signal });
});

test('partial downloads count against the limit of the cache, and are evicted before whole images', async () => {
  const { cache, dir, names } = await newCache({ maxBytes: 500_000 });
  await using good = await startImageServer({ content: randomBytes(300_000) });
  (await cache.fetch(good.url, { signal })).release();
  for (let index = 0; index < 5; index += 1) {
    const content = randomBytes(250_000);
    await using bad = await startImageServer({
      ...{ content, etag: '"v1"', cutAfter: 120_000, cuts: 99 },
      intercept: (request) => {
        // Resumed requests receive nothing.
        if (request.headers.range !== undefined) request.socket.destroy();
        return request.headers.range !== undefined;
      },
    });
    await assert.rejects(cache.fetch(bad.url, { signal }));
  }
  (await cache.fetch(good.url, { signal })).release();
  await cache.close();
  const sizes = await Promise.all(
    (await names()).map(async (name) => (await stat(join(dir, name))).size),
  );
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(whole <= 501_000, `${whole} bytes`);
  assert.ok((await cache.stats()).sizeBytes > 300_000, 'beginnings are not counted');
  assert.ok((await names()).some((name) => name.startsWith('sha256-')));
});

test('at most 64 partial downloads are kept, the newest, and none older than a week', async () => {
  const { cache, dir } = await newCache();
  const partials = async () =>
    (await readdir(dir)).filter((name) => /^partial-[0-9a-f]+$/.test(name));
  await using server = await startImageServer({ content: randomBytes(1000) });
  (await cache.fetch(server.url, { signal })).release();
  const plant = async (index: number, at: Date): Promise<void> => {
    const path = join(dir, `partial-${index.toString(16).padStart(64, '0')}`);
    await writeFile(path, 'x');
    await utimes(path, at, at);
  };
  const now = Date.now();
  for (let index = 0; index < 80; index += 1) await plant(index, new Date(now - index * 1000));
  await plant(99, new Date(now - 8 * 24 * 3600 * 1000));
  (await cache.fetch(server.url, { signal })).release();
  await cache.close();
  const left = await partials();
  assert.equal(left.length, 64);
  assert.ok(left.includes(`partial-${'0'.repeat(64)}`), 'the newest went first');
});

const trickle: RequestListener = (_, response) => {
  response.setHeader('etag', '"slow"');
  response.write('x');
  const timer = setInterval(() => response.write('x'), 10);
  response.on('close', () => clearInterval(timer));
};
const hang: RequestListener = (_, response) => {
  response.writeHead(200, { 'content-length': 1000, etag: '"mute"' });
  response.flushHeaders();
};

test('a server below the minimum download rate fails after five attempts', async () => {
  for (const listener of [trickle, hang]) {
    let requests = 0;
    await using server = await startServer((request, response) => {
      requests += 1;
      listener(request, response);
    });
    const limits = { minRate: 4096, timeoutS: 0, remoteHosts: [] };
    const { cache } = await newCache({
      limits: limitsOf({ minDownloadRate: 4096, downloadTimeoutS: 0 }),
      rateWindowMs: 100,
    });
    const isTooSlow = /bytes per second over .*, below the limit of 4096/;
    await assert.rejects(cache.fetch(server.url, { signal }), (error) => {
      assert.ok(isAppError(error), String(error));
      assert.match(`${error.message} ${error.hint}`, isTooSlow);
      assert.match(error.hint ?? '', /--min-download-rate/);
      return true;
    });
    assert.equal(requests, 5);
    const options = { signal, retryDelayMs: 1, limits, rateWindowMs: 100 };
    const url = server.url.replace('/image', '/x.tar.gz');
    await assert.rejects(
      openPackage(url, options).then(({ stream }) => buffer(stream)),
      fails('PACKAGE_DOWNLOAD', isTooSlow),
    );
  }
});

test('pauses of the reader do not count against the download rate', async () => {
  const content = randomBytes(4_000_000);
  await using server = await startImageServer({ content });
  // Below the rate in the pause if it counted, and far below the rate at any load.
  const options = {
    signal,
    limits: { minRate: 100_000, timeoutS: 0, remoteHosts: [] },
    rateWindowMs: 50,
  };
  const { stream } = await openPackage(server.url.replace('/image', '/x.tar.gz'), options);
  await once(stream, 'readable');
  await new Promise((resolve) => setTimeout(resolve, 2000));
  assert.ok((await buffer(stream)).equals(content));
});

test('an endless download fails at its timeout, also while its stream is not read', async () => {
  // Fast enough, and endless.
  await using server = await startServer((_, response) => {
    const timer = setInterval(() => response.write(chunk), 5);
    response.on('close', () => clearInterval(timer));
  });
  const { cache } = await newCache({ limits: limitsOf({ downloadTimeoutS: 1 }) });
  const late = /did not end within 1 s/;
  await assert.rejects(cache.fetch(server.url, { signal }), fails('DOWNLOAD_FAILED', late));
  const options = { signal, limits: { minRate: 4096, timeoutS: 1, remoteHosts: [] } };
  const { stream } = await openPackage(server.url.replace('/image', '/x.tar.gz'), options);
  const [error] = (await once(stream, 'error').catch((thrown: unknown) => [thrown])) as [unknown];
  fails('PACKAGE_DOWNLOAD', late)(error);
});
