import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { closeSync, readSync } from 'node:fs';
import { chown, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import {
  HANDED_FILE_HEADER,
  METAD_FILE_SOCKET,
  TAKES_FILE_HEADER,
} from '#shared/contract/metad-control.ts';
import { silentLogger } from '#shared/log/log.ts';
import { receiveDescriptor } from '#shared/sys/descriptors.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixDatagrams } from '#shared/sys/unix-sockets.ts';
import {
  startContentServer,
  type ContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';

const OWN = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
const OFFSET = 1000;
const MAX_NAME_BYTES = 64;

let directory: string;
let socketPath: string;
let archive: string;
let server: ContentServer;
let place: string;
const opened = new EventEmitter();

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-hand-over-'));
  socketPath = join(directory, 'content.sock');
  archive = join(directory, 'archive');
  place = join(directory, METAD_FILE_SOCKET);
  await writeFile(archive, `${'x'.repeat(OFFSET)}0123456789yyy`, { mode: 0o600 });
  server = await startContentServer({
    ...{ socketPath, gid: process.getgid?.() ?? 0, logger: silentLogger, clock: systemClock },
    content: {
      openImage: async () => Promise.resolve({ path: archive, sizeBytes: OFFSET }),
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => Promise.resolve(undefined),
      openMirror: async () => Promise.resolve(undefined),
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => Promise.resolve(undefined),
      findBootTree: async () => ({
        open: async ({ path, signal }) => {
          if (path === 'slow') {
            opened.emit('asked');
            await once(signal, 'abort');
            opened.emit('aborted');
          }
          const handle = await open(archive);
          return { kind: 'slice', handle, offset: OFFSET, sizeBytes: 10, etag: '"e"' };
        },
      }),
    },
  });
});
after(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});
beforeEach(() => rm(place, { force: true }));

function ask(
  path: string,
  name: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = { socketPath, path: `/v1/instances/${OWN}/${path}`, method, agent: false };
    const outgoing = request(
      { ...asked, headers: { ...headers, [TAKES_FILE_HEADER]: name } },
      resolve,
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** What metad makes of an answer: the bytes that the guest is to have. */
async function bytesOf(incoming: IncomingMessage, socket: number, name: string): Promise<string> {
  assert.equal(await text(incoming), '');
  assert.equal(incoming.headers['content-length'], '0');
  const message = receiveDescriptor(socket, MAX_NAME_BYTES);
  assert.equal(message?.text, name);
  const fd = message.fd ?? -1;
  const [first = 0, length = 0] = String(incoming.headers[HANDED_FILE_HEADER])
    .split(' ')
    .map(Number);
  const bytes = Buffer.alloc(length);
  assert.equal(readSync(fd, bytes, 0, length, first), length);
  closeSync(fd);
  return bytes.toString();
}

test('metad gets a descriptor in place of the bytes of a boot file or an image, whole or by range', async () => {
  const socket = openUnixDatagrams(place);
  const cases: readonly (readonly [string, Record<string, string>, number, string])[] = [
    ['boot/a', {}, 200, '0123456789'],
    ['boot/a', { range: 'bytes=2-4' }, 206, '234'],
    ['boot/a', { range: 'bytes=2-4', 'if-range': '"old"' }, 200, '0123456789'],
    ['image', {}, 200, 'x'.repeat(OFFSET)],
    ['image', { range: 'bytes=998-' }, 206, 'xx'],
  ];
  for (const [path, headers, status, expected] of cases) {
    const name = randomUUID();
    const incoming = await ask(path, name, headers);
    assert.equal(incoming.statusCode, status);
    assert.equal(await bytesOf(incoming, socket, name), expected);
  }
  const bare: readonly (readonly [string, Record<string, string>, number])[] = [
    ['HEAD', {}, 200],
    ['GET', { 'if-none-match': '"e"' }, 304],
    ['GET', { range: 'bytes=10-' }, 416],
  ];
  for (const [method, headers, status] of bare) {
    const incoming = await ask('boot/a', randomUUID(), headers, method);
    incoming.resume();
    assert.equal(incoming.statusCode, status);
    assert.equal(receiveDescriptor(socket, MAX_NAME_BYTES), null);
  }
  closeFd(socket);
});

test('metad gets the bytes when its socket is full or missing', async () => {
  assert.equal(await text(await ask('boot/a', randomUUID())), '0123456789');
  const socket = openUnixDatagrams(place);
  const all = await Promise.all(
    Array.from({ length: 64 }, async () => text(await ask('boot/a', randomUUID()))),
  );
  const handed = all.filter((body) => body === '').length;
  assert.ok(handed > 0 && handed < all.length, `${handed} were handed over`);
  assert.ok(all.every((body) => body === '' || body === '0123456789'));
  closeFd(socket);
  assert.equal(await text(await ask('boot/a', randomUUID())), '0123456789');
});

test('a file that metad’s user may write is sent as bytes', async () => {
  const METAD_UID = 64_001;
  const socket = openUnixDatagrams(place);
  await chown(place, METAD_UID, process.getgid?.() ?? 0);
  const name = randomUUID();
  assert.equal(await bytesOf(await ask('boot/a', name), socket, name), '0123456789');
  await chown(archive, METAD_UID, 0);
  assert.equal(await text(await ask('boot/a', randomUUID())), '0123456789');
  assert.equal(receiveDescriptor(socket, MAX_NAME_BYTES), null);
  await chown(archive, 0, 0);
  closeFd(socket);
});

test('no descriptor is sent for a request that is canceled while the file is opened', async () => {
  const socket = openUnixDatagrams(place);
  const asked = { socketPath, path: `/v1/instances/${OWN}/boot/slow`, agent: false };
  const headers = { [TAKES_FILE_HEADER]: randomUUID() };
  const outgoing = request({ ...asked, headers }).on('error', () => undefined);
  const isAsked = once(opened, 'asked');
  outgoing.end();
  await isAsked;
  const isAborted = once(opened, 'aborted');
  outgoing.destroy();
  await isAborted;
  const name = randomUUID();
  assert.equal(await bytesOf(await ask('boot/a', name), socket, name), '0123456789');
  closeFd(socket);
});

test('a symbolic link at metad’s socket gets no descriptor, and an invalid name gets the bytes', async () => {
  const elsewhere = join(directory, 'other.sock');
  const other = openUnixDatagrams(elsewhere);
  await symlink(elsewhere, place);
  assert.equal((await ask('boot/a', randomUUID())).statusCode, 502);
  assert.equal(receiveDescriptor(other, MAX_NAME_BYTES), null);
  await rm(place);
  const own = openUnixDatagrams(place);
  assert.equal(await text(await ask('boot/a', 'MAINPID=1')), '0123456789');
  assert.equal(receiveDescriptor(own, MAX_NAME_BYTES), null);
  for (const fd of [other, own]) closeFd(fd);
});
