import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createRepositoryTree,
  type BootTree,
} from '../../../../noded/content/downloads/boot-tree.ts';
import {
  startContentServer,
  type ContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const OWN = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
const OTHER = '6aa7b544-1f3d-49e9-b2b7-73836039b5d0';
const OFFSET = 1000;
const CONTENT = Buffer.from('0123456789');

const trees = new Map<string, BootTree>();
let directory: string;
let socketPath: string;
let archive: string;
let server: ContentServer;
let repository: string;
const upstream = createServer((incoming, response) => {
  if (incoming.url === '/allowed/linux') response.end('kernel');
  else if (incoming.url === '/allowed/away') response.writeHead(302, { location: '/other' }).end();
  else if (incoming.url === '/other') response.end('secret of another folder');
  else response.writeHead(404).end();
});

/** One file of an archive, which begins somewhere in the middle of a bigger one. */
const slices: BootTree = {
  open: async ({ path }) => {
    if (path !== 'a/linux') return { kind: 'refusal', status: 404, reason: 'no such file' };
    const handle = await open(archive);
    return { kind: 'slice', handle, offset: OFFSET, sizeBytes: CONTENT.length, etag: '"e"' };
  },
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-boot-'));
  socketPath = join(directory, 'content.sock');
  archive = join(directory, 'archive');
  await writeFile(
    archive,
    Buffer.concat([Buffer.alloc(OFFSET, 'x'), CONTENT, Buffer.alloc(9, 'y')]),
  );
  repository = `http://127.0.0.1:${await listenOnLoopback(upstream)}/allowed`;
  server = await startContentServer({
    socketPath,
    gid: process.getgid?.() ?? 0,
    content: {
      openImage: async () => Promise.resolve(undefined),
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => Promise.resolve(undefined),
      openMirror: async () => Promise.resolve(undefined),
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => Promise.resolve(undefined),
      findBootTree: async (uuid) => trees.get(uuid),
    },
    logger: silentLogger,
    clock: systemClock,
  });
});
after(async () => {
  await server.close();
  upstream.close();
  upstream.closeAllConnections();
  await rm(directory, { recursive: true });
});

interface Got {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

function begin(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath, path: `/v1/instances/${path}`, headers, method, agent: false },
      resolve,
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

async function ask(...args: Parameters<typeof begin>): Promise<Got> {
  const incoming = await begin(...args);
  const text = (await buffer(incoming)).toString();
  return { status: incoming.statusCode, headers: incoming.headers, text };
}

async function isOpen(path: string): Promise<boolean> {
  const links = (await readdir('/proc/self/fd')).map((fd) =>
    readlink(`/proc/self/fd/${fd}`).catch(() => ''),
  );
  return (await Promise.all(links)).includes(path);
}

test('a file in an archive is served whole, by range and by condition, and the archive is closed afterwards', async () => {
  trees.set(OWN, slices);
  const whole = await ask(`${OWN}/boot/a/linux`);
  assert.deepEqual([whole.status, whole.text, whole.headers.etag], [200, '0123456789', '"e"']);
  const cases: readonly (readonly [Record<string, string>, number, string, string?])[] = [
    [{ range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
    [{ range: 'bytes=-3' }, 206, '789', 'bytes 7-9/10'],
    [{ range: 'bytes=8-99' }, 206, '89', 'bytes 8-9/10'],
    [{ range: 'bytes=2-4', 'if-range': '"e"' }, 206, '234', 'bytes 2-4/10'],
    [{ range: 'bytes=2-4', 'if-range': '"old"' }, 200, '0123456789'],
    [{ 'if-none-match': '"x", "e"' }, 304, ''],
  ];
  for (const [headers, status, text, range] of cases) {
    const got = await ask(`${OWN}/boot/a/linux`, headers);
    assert.deepEqual([got.status, got.text, got.headers['content-range']], [status, text, range]);
  }
  const beyond = await ask(`${OWN}/boot/a/linux`, { range: 'bytes=10-' });
  assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, 'bytes */10']);
  const head = await ask(`${OWN}/boot/a/linux`, {}, 'HEAD');
  assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '10']);
  while (await isOpen(archive)) await sleep(5);
});

test('a slow reader gets each byte of a file once, and the file is closed when a reader disconnects', async () => {
  const content = randomBytes(5 * 1024 * 1024 + 1);
  const path = join(directory, 'large');
  await writeFile(path, content);
  trees.set(OWN, {
    open: async () => {
      const handle = await open(path);
      return { kind: 'slice', handle, offset: 0, sizeBytes: content.length, etag: '"e"' };
    },
  });
  const slow = await begin(`${OWN}/boot/a/linux`);
  const got: Buffer[] = [];
  for await (const chunk of slow as AsyncIterable<Buffer>) {
    got.push(chunk);
    await sleep(1);
  }
  assert.ok(Buffer.concat(got).equals(content));
  const gone = await begin(`${OWN}/boot/a/linux`);
  assert.ok(await isOpen(path));
  gone.destroy();
  while (await isOpen(path)) await sleep(5);
});

test('a missing file gets 404, and a file of an unknown tree gets 503', async () => {
  trees.set(OWN, slices);
  assert.equal((await ask(`${OWN}/boot/a`)).status, 404);
  assert.equal((await ask(`${OTHER}/boot/a/linux`)).status, 503);
  trees.delete(OWN);
  assert.equal((await ask(`${OWN}/boot/a/linux`)).status, 503);
  assert.equal((await ask(`${OWN}/boot/a/linux`, {}, 'PUT')).status, 405);
});

test('a path outside of the allowed folder of a repository gets 400', async () => {
  trees.set(OWN, createRepositoryTree(repository));
  const brief = async (path: string): Promise<[number | undefined, string]> => {
    const { status, text } = await ask(`${OWN}/boot/${path}`);
    return [status, text];
  };
  assert.deepEqual(await brief('linux'), [200, 'kernel']);
  assert.equal((await brief('missing'))[0], 404);
  assert.equal((await brief('%2e%2e/other'))[0], 400);
  const [status, reason] = await brief('away');
  assert.equal(status, 502);
  assert.match(reason, /the mirror cannot be read/);
  assert.doesNotMatch(reason, /secret/);
});
