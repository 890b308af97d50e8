import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, open, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { METAD_FILE_SOCKET } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { run } from '#shared/process/run.ts';
import { sendDescriptor } from '#shared/sys/descriptors.ts';
import { dropCached } from '#shared/sys/files.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openSocketPair, openUnixDatagrams } from '#shared/sys/unix-sockets.ts';
import { SEND_BUFFER_BYTES } from '../../metad/config/limits.ts';
import type { BootTree } from '../../noded/content/downloads/boot-tree.ts';
import type { ContentServer } from '../../noded/net/metad-link/content-server.ts';
import { bootOf, folderTree, serveBootTrees } from '../lab/netboot-lab.ts';
import { ChannelLab, type Answer, type Guest } from './support/channel-lab.ts';
import { askFromGuest, connectFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const SIZE = 40 * 1024 * 1024;
const PATH = `/ganeti/latest/boot/machines/${exampleView().uuid}/boot`;
const OTHER = '6aa7b544-1f3d-49e9-b2b7-000000000000';
const contents = [randomBytes(SIZE), randomBytes(SIZE)] as const;
/** fcntl.h; read-only is 0. */
const O_ACCMODE = 3;
const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const trees = new Map<string, BootTree>();
let lab: ChannelLab;
let guest: Guest;
let content: ContentServer;
let folders: readonly [string, string];
let revision = 0;

before(async () => {
  lab = await ChannelLab.create();
  folders = [
    await mkdtemp(join(tmpdir(), 'gnt-tree-')),
    await mkdtemp(join(tmpdir(), 'gnt-tree-')),
  ];
  for (const [index, folder] of folders.entries())
    await writeFile(join(folder, 'initrd'), contents[index] ?? '');
  await startContent();
  guest = await lab.addGuest(exampleView().channel);
  await use(0);
});
after(async () => {
  await content.close();
  await lab[Symbol.asyncDispose]();
  for (const folder of folders) await rm(folder, { recursive: true });
});

async function startContent(): Promise<void> {
  content = await serveBootTrees(lab, trees);
}

/** Selects a tree, and a script that names it. */
async function use(index: 0 | 1): Promise<void> {
  const view: InstanceView = exampleView();
  trees.set(view.uuid, folderTree(folders[index]));
  const boot = bootOf(view, `#!ipxe\n# ${index}\n`);
  const { status } = await lab.put({ ...view, boot, revision: ++revision });
  assert.equal(status, 204);
}

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
  askFromGuest(guest.namespace, path, { headers, method });

/** Returns a response whose body is not read yet. */
async function begin(path: string): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...{ host: '169.254.169.254', path, headers: { connection: 'close' } },
        createConnection: () => connectFromGuest(guest.namespace),
      },
      resolve,
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

test('an instance reads ranges and sizes of its boot files, and gets 404 for those of another instance', async () => {
  const part = await ask(`${PATH}/initrd`, { range: 'bytes=1000-1009' });
  assert.equal(part.status, 206);
  assert.deepEqual(part.body, contents[0].subarray(1000, 1010));
  const head = await ask(`${PATH}/initrd`, {}, 'HEAD');
  assert.deepEqual([head.status, head.headers['content-length']], [200, String(SIZE)]);
  assert.equal((await ask(`${PATH}/missing`)).status, 404);
  for (const path of ['initrd', '%2e%2e/x', ''])
    assert.equal((await ask(`${PATH.replace(exampleView().uuid, OTHER)}/${path}`)).status, 404);
  assert.equal((await ask(`${PATH}/initrd`, {}, 'POST')).status, 405);
});

test('a 40 MB download during a replacement returns the old file whole, and the next download the new file', async () => {
  const slow = await begin(`${PATH}/initrd`);
  await use(1);
  assert.equal(digest(await buffer(slow)), digest(contents[0]));
  assert.equal(digest((await ask(`${PATH}/initrd`)).body), digest(contents[1]));
  const { channel } = exampleView();
  const script = await ask(`/ganeti/latest/boot/${channel.mac}.ipxe`);
  assert.match(script.body.toString(), /# 1/);
});

/** Returns metad's open files of a folder, with their flags. */
async function openFiles(folder: string): Promise<readonly string[]> {
  const root = `/proc/${lab.metadPid}`;
  const found = (await readdir(`${root}/fd`)).map(async (fd) => {
    const path = await readlink(`${root}/fd/${fd}`).catch(() => '');
    const info = await readFile(`${root}/fdinfo/${fd}`, 'utf8').catch(() => '');
    const mode = Number.parseInt(/flags:\s+([0-7]+)/.exec(info)?.[1] ?? '', 8) & O_ACCMODE;
    return path.startsWith(folder) ? [`${basename(path)} ${mode}`] : [];
  });
  return (await Promise.all(found)).flat();
}

test('metad opens a file of the node read-only, and closes it after the transfer', async () => {
  await use(0);
  const slow = await begin(`${PATH}/initrd`);
  assert.deepEqual(await openFiles(folders[0]), ['initrd 0']);
  slow.destroy();
  while ((await openFiles(folders[0])).length > 0) await sleep(5);
  assert.equal(digest((await ask(`${PATH}/initrd`)).body), digest(contents[0]));
  while ((await openFiles(folders[0])).length > 0) await sleep(5);
});

test('files of requests that were sent ahead are closed with their connection', async () => {
  await use(0);
  const ahead = `GET ${PATH}/initrd HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`;
  const socket = connectFromGuest(guest.namespace);
  socket.on('error', () => undefined).write(ahead.repeat(4));
  while ((await openFiles(folders[0])).length < 4) await sleep(5);
  socket.destroy();
  while ((await openFiles(folders[0])).length > 0) await sleep(5);
});

/** Returns the bytes that the kernel holds for guests. */
async function unsentBytes(): Promise<number> {
  const words = ['netns', 'exec', lab.namespace, 'ss', '-tnH', 'sport', '=', ':80'];
  const { stdout } = await run('ip', words);
  return stdout
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + Number(line.split(/\s+/)[2] ?? 0), 0);
}

test('the kernel buffers little of a transfer whose fast reader stops', async () => {
  await use(0);
  const reader = await begin(`${PATH}/initrd`);
  let bytes = 0;
  for await (const chunk of reader.iterator({ destroyOnReturn: false }))
    if ((bytes += (chunk as Buffer).length) > SIZE / 2) break;
  reader.pause();
  let held = -1;
  for (let before = -2; held !== before || held === 0; await sleep(100)) {
    before = held;
    held = await unsentBytes();
  }
  reader.destroy();
  // The kernel doubles the buffer, and bytes in transfer are added.
  assert.ok(held <= 2 * 2 * SEND_BUFFER_BYTES, `${held} bytes`);
});

test('a world-writable file is not opened by metad, and is served whole', async () => {
  await use(0);
  await chmod(join(folders[0], 'initrd'), 0o666);
  const slow = await begin(`${PATH}/initrd`);
  assert.deepEqual(await openFiles(folders[0]), []);
  assert.equal(digest(await buffer(slow)), digest(contents[0]));
  await chmod(join(folders[0], 'initrd'), 0o644);
});

test('a file that is not in the page cache is served from its disk', async () => {
  await use(0);
  await using handle = await open(join(folders[0], 'initrd'));
  await handle.sync();
  dropCached(handle.fd);
  assert.equal(digest((await ask(`${PATH}/initrd`)).body), digest(contents[0]));
});

test('a file that metad did not request is not kept open', async () => {
  await use(0);
  await ask(`${PATH}/initrd`, { range: 'bytes=0-9' });
  const socket = openUnixDatagrams(null);
  await using handle = await open(join(folders[1], 'initrd'));
  const to = join(lab.directory, METAD_FILE_SOCKET);
  for (const name of [randomUUID(), '', 'x'.repeat(500)])
    sendDescriptor(socket, name, handle.fd, to);
  closeFd(socket);
  await ask(`${PATH}/initrd`, { range: 'bytes=0-9' });
  assert.deepEqual(await openFiles(folders[1]), []);
});

test('a descriptor that arrives without a waiting request is closed', async () => {
  await use(0);
  await ask(`${PATH}/initrd`, { range: 'bytes=0-9' });
  const [own, given] = openSocketPair();
  const socket = openUnixDatagrams(null);
  sendDescriptor(socket, randomUUID(), given, join(lab.directory, METAD_FILE_SOCKET));
  for (const fd of [socket, given]) closeFd(fd);
  await once(new Socket({ fd: own }).resume(), 'end');
});

test('a transfer outlives the daemon that passed the file, and new requests get 503 with Retry-After', async () => {
  await use(0);
  const slow = await begin(`${PATH}/initrd`);
  await content.close();
  assert.equal(digest(await buffer(slow)), digest(contents[0]));
  const away = await ask(`${PATH}/initrd`);
  assert.deepEqual([away.status, away.headers['retry-after']], [503, '1']);
  await startContent();
  assert.equal(digest((await ask(`${PATH}/initrd`)).body), digest(contents[0]));
  // A restarted daemon that does not know the boot files of its instances yet.
  trees.delete(exampleView().uuid);
  const early = await ask(`${PATH}/initrd`);
  assert.deepEqual([early.status, early.headers['retry-after']], [503, '1']);
});
