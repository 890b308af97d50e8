import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import Koa from 'koa';
import { loadFolder, servePage } from '../../../../noded/api/web/page.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';
import { askWeb } from './web-lab.ts';

/** Serves a folder with a compressed and a plain file. */
async function servesFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-page-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'index.html'), '<p>index');
  await writeFile(join(folder, 'main-ABCD1234.js.br'), brotliCompressSync('run()'));
  await writeFile(join(folder, 'notes.txt'), 'not a part of the page');
  const page = await loadFolder(folder);
  const app = new Koa();
  app.use((context) => {
    if (!servePage(context, page)) context.status = 404;
  });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  t.after(() => server.close());
  return `http://127.0.0.1:${await listenOnLoopback(server)}`;
}

test('a compressed file reaches clients with and without Brotli', async (t) => {
  const origin = await servesFolder(t);
  const plain = await askWeb(`${origin}/main-ABCD1234.js`);
  assert.deepEqual([plain.text, plain.headers['content-encoding']], ['run()', undefined]);
  assert.match(plain.headers['content-type'] ?? '', /^text\/javascript/);
  const headers = { 'accept-encoding': 'gzip, br' };
  const brotli = await askWeb(`${origin}/main-ABCD1234.js`, { headers });
  assert.equal(brotli.headers['content-encoding'], 'br');
  assert.notEqual(brotli.headers.etag, plain.headers.etag);
});

test('a name with a hash is kept, and the index is asked again', async (t) => {
  const origin = await servesFolder(t);
  const script = await askWeb(`${origin}/main-ABCD1234.js`);
  assert.match(script.headers['cache-control'] ?? '', /immutable/);
  const index = await askWeb(origin);
  assert.equal(index.headers['cache-control'], 'no-store');
  const again = { headers: { 'if-none-match': index.headers.etag ?? '' } };
  assert.equal((await askWeb(origin, again)).status, 304);
});

test('places in the page are the index, and other files do not exist', async (t) => {
  const origin = await servesFolder(t);
  for (const path of ['/instances/web1.example.com', '/..%2f..%2fetc/passwd.js'])
    assert.equal((await askWeb(`${origin}${path}`)).text, '<p>index', path);
  for (const path of ['/notes.txt', '/none.js', '/main-ABCD1234.js.br', '/..%2fpasswd.js'])
    assert.equal((await askWeb(`${origin}${path}`)).status, 404, path);
});
