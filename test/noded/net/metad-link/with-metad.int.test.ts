import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import { run } from '#shared/process/run.ts';
import { userOf } from '../../../../noded/host/process-facts.ts';
import { requireDigest } from '../../../../noded/content/downloads/require-digest.ts';
import type { ContentProvider } from '../../../../noded/net/metad-link/content-server.ts';
import { createMetadLink, type MetadLink } from '../../../../noded/net/metad-link/metad-link.ts';
import { attack } from '../../../lab/attack-process.ts';
import { exampleView, installingView } from '../../../metad/support/view-fixture.ts';

const service = 'http://169.254.169.254';
const program = join(import.meta.dirname, '../../../../metad/main.ts');
const image = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
const { uuid, channel } = exampleView();
let paths: RootPaths;
let guest = '';
let link: MetadLink;
let packageError: AppError | undefined;
/** The SHA-256 of the package that the installation has checked. */
let checkedPackage: string | undefined;

before(async () => {
  paths = createRootPaths(await mkdtemp(join(tmpdir(), 'gnt-with-metad-')));
  const host = paths.networkNamespace;
  guest = `${host}-guest`;
  const ip = (...args: string[]) => run('ip', args);
  for (const namespace of [host, guest]) {
    await ip('netns', 'add', namespace);
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
  }
  await run('ip', [
    'netns',
    'exec',
    host,
    'sysctl',
    '-qw',
    'net.ipv4.ip_unprivileged_port_start=67',
  ]);
  const { device, mac } = channel;
  await ip(
    '-n',
    host,
    'link',
    'add',
    device,
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'address',
    mac,
    'netns',
    guest,
  );
  await ip('-n', host, 'addr', 'add', '169.254.169.254/32', 'dev', device);
  await ip('-n', host, 'addr', 'add', 'fe80::a9fe:a9fe/64', 'dev', device, 'nodad');
  await ip('-n', host, 'link', 'set', device, 'up');
  await ip('-n', host, 'route', 'append', `${channel.ip}/32`, 'dev', device);
  await ip('-n', guest, 'link', 'set', 'eth0', 'up');
  await ip('-n', guest, 'addr', 'add', `${channel.ip}/16`, 'dev', 'eth0');
  await writeFile(join(paths.root, 'image'), image, { mode: 0o600 });
  link = newLink();
  await link.start(content);
});
after(async () => {
  await link.stop();
  await run('ip', ['netns', 'delete', guest]);
  await run('ip', ['netns', 'delete', paths.networkNamespace]);
  await rm(paths.root, { recursive: true });
});

const content: ContentProvider = {
  openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
  findBootTree: async () => undefined,
  openMirror: async () => undefined,
  openImage: async () => ({ path: join(paths.root, 'image'), sizeBytes: image.length }),
  issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
  findService: async () => undefined,
  openPackage: async () => {
    if (packageError) throw packageError;
    const bytes = [Buffer.from('package '), Buffer.from('bytes')];
    const stream = Readable.from(bytes);
    const sizeBytes = Buffer.concat(bytes).length;
    if (checkedPackage === undefined) return { stream, sizeBytes: null };
    return { stream: requireDigest(stream, checkedPackage, 'x.tgz'), sizeBytes };
  },
};

function newLink(): MetadLink {
  return createMetadLink({
    paths,
    launcher: {
      command: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', program],
    },
    logger: silentLogger,
    clock: systemClock,
  });
}

/** Returns the output of a guest's curl. */
async function fromGuest(...args: string[]): Promise<string> {
  return (await run('ip', ['netns', 'exec', guest, 'curl', '-sS', '--max-time', '20', ...args]))
    .stdout;
}

test('the guest reads the values of the pushed view, and a malformed view is refused by field and changes nothing', async () => {
  await link.putView(exampleView());
  const read = JSON.parse(await fromGuest(`${service}/ganeti/latest/meta_data.json`)) as {
    name: string;
  };
  assert.equal(read.name, 'web1.example.com');
  await assert.rejects(
    link.putView({ ...exampleView(), revision: 2, hypervisor: 7 as never }),
    (error) => isAppError(error, 'METAD_REFUSED') && error.message.includes('hypervisor'),
  );
  assert.deepEqual(
    (await link.status()).instances.map((entry) => entry.revision),
    [1],
  );
});

test("a process of metad's user cannot read metad's memory, and metad leaves no core", async () => {
  const { pid } = link;
  assert.ok(pid !== null);
  const uid = userOf(pid);
  assert.ok(uid !== undefined && uid !== 0);
  const { signal, ...others } = attack(pid, uid);
  assert.equal(signal, 'done', 'it is a process of this user');
  assert.deepEqual(others, {
    ...{ maps: 'EACCES', memory: 'EACCES', descriptors: 'EACCES' },
    ...{ descriptor: 'EPERM', trace: 'EPERM' },
  });
  assert.match(await readFile(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +1 +1 /m);
});

test('the tree shows the parameters of the guest without private and secret values', async () => {
  const shown = await link.tree(uuid, 'ganeti/latest/os/parameters.json');
  assert.equal(shown.status, 200);
  const body = shown.body.toString();
  assert.ok(body.includes('dhcp') && !body.includes('S3CRET') && !body.includes('KEY123'), body);
  assert.match(await fromGuest(`${service}/ganeti/latest/os/parameters.json`), /S3CRET/);
  assert.equal((await link.tree(uuid, 'ganeti/latest/nothing')).status, 404);
});

test("bytes pass both ways through the queues, and a guest's write is an event", async () => {
  await link.writeQueue(uuid, Buffer.from([0, 1, 255]));
  assert.equal(
    await fromGuest('-o', '/dev/null', '-w', '%{size_download}', `${service}/ganeti/latest/read`),
    '3',
  );
  const controller = new AbortController();
  const events = link.events({ signal: controller.signal })[Symbol.asyncIterator]();
  await fromGuest('--data-binary', 'from the guest', `${service}/ganeti/latest/write`);
  const { value } = (await events.next()) as { value: MetadEvent };
  assert.deepEqual([value.instance, value.event], [uuid, { type: 'written', bytes: 14 }]);
  assert.deepEqual(await link.readQueue(uuid, { waitS: 5 }), {
    bytes: Buffer.from('from the guest'),
    nextOffset: 14,
  });
  assert.equal(await link.readQueue(uuid), null);
  controller.abort();
  await events.return?.(undefined);
  await assert.rejects(link.writeQueue(uuid, Buffer.alloc(65_537)), (error) =>
    isAppError(error, 'CHANNEL_FULL'),
  );
  await assert.rejects(link.writeQueue(crypto.randomUUID(), Buffer.from('x')), (error) =>
    isAppError(error, 'INSTANCE_NOT_FOUND'),
  );
});

test('a connection reaches a port of the guest, and a closed port is an error', async () => {
  const echo = spawn(
    'ip',
    [
      'netns',
      'exec',
      guest,
      process.execPath,
      '-e',
      "require('net').createServer((s) => { s.write('SSH-'); s.pipe(s); }).listen(2222, () => console.log('up'))",
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  try {
    await once(echo.stdout, 'data');
    const stream = await link.connect(uuid, 2222);
    const read = text(stream);
    stream.end('hello');
    assert.equal(await read, 'SSH-hello');
    await assert.rejects(link.connect(uuid, 2223), (error) =>
      isAppError(error, 'GUEST_UNREACHABLE'),
    );
  } finally {
    echo.kill('SIGKILL');
  }
});

test('image and package stream from noded through metad, and a failure gets 502 with the reason', async () => {
  await link.putView(installingView({ revision: 10 }));
  const size = await fromGuest(
    '-o',
    '/dev/null',
    '-w',
    '%{size_download}',
    `${service}/ganeti/latest/os/image`,
  );
  assert.equal(size, '100000');
  const part = await fromGuest('-r', '10-13', `${service}/ganeti/latest/os/image`);
  assert.deepEqual(Buffer.from(part, 'latin1'), image.subarray(10, 14));
  assert.equal(await fromGuest(`${service}/ganeti/latest/os/package`), 'package bytes');
  packageError = new AppError('PACKAGE_DOWNLOAD', 'the mirror said 503');
  assert.match(
    await fromGuest('-w', ' %{http_code}', `${service}/ganeti/latest/os/package`),
    /mirror said 503[^]* 502$/,
  );
});

test('a package with the right checksum arrives whole, and a package with another checksum is an error', async () => {
  packageError = undefined;
  await link.putView(installingView({ revision: 11 }));
  // A failure before the first byte is a status, a later one a cut: neither is a success.
  const fetched = (): Promise<string> => fromGuest('-f', `${service}/ganeti/latest/os/package`);
  checkedPackage = createHash('sha256').update('package bytes').digest('hex');
  assert.equal(await fetched(), 'package bytes');
  checkedPackage = createHash('sha256').update('another package').digest('hex');
  await assert.rejects(fetched(), { code: 'COMMAND_FAILED', message: /curl/ });
});

/** The example as a daemon shows it that no longer knows the secret. */
function forgetfulView(revision: number) {
  const { osParameters, ...view } = exampleView({ revision });
  return { ...view, osParameters: { ...osParameters, rootpw: UNKNOWN } };
}
const UNKNOWN = { value: null, visibility: 'secret' } as const;

test("a push after a restart of metad names the lost secrets, and the guest's queue offsets continue", async () => {
  const restarted = new Promise<readonly string[]>((resolve) =>
    link.onRestarted(async () => resolve(await link.putView(forgetfulView(13)))),
  );
  const read = (offset: string): Promise<string> =>
    fromGuest('-D', headers, `${service}/ganeti/latest/read?offset=${offset}`);
  const headers = join(paths.root, 'headers');
  const nextOffset = async (): Promise<number> =>
    Number(/^x-gnt-offset: (\d+)/im.exec(await readFile(headers, 'utf8'))?.[1]);
  await link.writeQueue(uuid, Buffer.from('read'));
  assert.equal(await read('0'), 'read');
  const reached = await nextOffset();
  assert.ok(reached < 100, `${reached}`);
  assert.deepEqual(await link.putView(forgetfulView(12)), []);
  process.kill(link.pid ?? 0, 'SIGKILL');
  assert.deepEqual(await restarted, ['rootpw']);
  assert.equal(
    await fromGuest(`${service}/latest/meta-data/instance-id`),
    exampleView().instanceId,
  );
  assert.equal(link.restarts, 1);
  // More than was read before. If offsets started again, some of it would count as read.
  await link.writeQueue(uuid, Buffer.from('all that was written since'));
  assert.equal(await read(String(reached)), 'all that was written since');
  const further = await nextOffset();
  await link.writeQueue(uuid, Buffer.from('more'));
  assert.equal(await read(String(further)), 'more');
});

test('the next noded adopts metad with its views', async () => {
  const { pid } = link;
  await link.detach();
  link = newLink();
  await link.start(content);
  assert.deepEqual([link.adopted, link.pid], [true, pid]);
  assert.deepEqual(
    (await link.status()).instances.map((entry) => entry.uuid),
    [uuid],
  );
  assert.match(await link.metrics(), /^# HELP/m);
  await link.deleteView(uuid);
  assert.deepEqual((await link.status()).instances, []);
});
