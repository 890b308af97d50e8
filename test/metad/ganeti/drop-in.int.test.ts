import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ChannelLab, METAD_UID } from '../support/channel-lab.ts';
import type { Answer, Guest } from '../support/channel-lab.ts';
import { askFromGuest } from '../support/guest-http.ts';
import { LuxiClient } from '../support/luxi-client.ts';

type Dict = Record<string, unknown>;
/** Requests of a real cluster of Ganeti 3.0.2, by the administrator's command. */
const requests = JSON.parse(
  await readFile(new URL('../../../fixtures/metad/ganeti-requests.json', import.meta.url), 'utf8'),
) as Record<string, { method: string; args: [Dict] }>;

const LINK = { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1' };
const PARAMETERS = '/ganeti/latest/os/parameters.json';
let lab: ChannelLab;
let guest: Guest;
let client: LuxiClient;
let socketPath: string;

before(async () => {
  lab = await ChannelLab.create((directory) => [
    ...['--ganeti', '--ganeti-socket', join(directory, 'socket/ganeti-metad')],
    ...[
      '--os-search-path',
      join(directory, 'os'),
      '--package-directory',
      join(directory, 'packages'),
    ],
  ]);
  socketPath = join(lab.directory, 'socket/ganeti-metad');
  for (const name of ['os/testos', 'packages']) {
    await mkdir(join(lab.directory, name), { recursive: true });
  }
  await writeFile(join(lab.directory, 'os/testos/create'), '#!/bin/sh\n# create\n');
  await writeFile(join(lab.directory, 'packages/pkg.tgz'), 'package');
  await symlink('/etc/passwd', join(lab.directory, 'packages/link'));
  guest = await lab.addGuest(LINK);
  client = await LuxiClient.open(socketPath);
});
after(async () => {
  client[Symbol.dispose]();
  await lab[Symbol.asyncDispose]();
});

function instanceOf(name: string): Dict {
  const instance = requests[name]?.args[0];
  assert.ok(instance, name);
  return structuredClone(instance);
}

async function push(instance: Dict): Promise<void> {
  assert.deepEqual(await client.call('updateConfig', instance), { success: true, result: [] });
}

/** Runs as metad's user. */
function execFileAs(
  command: readonly string[],
): Promise<{ status: number | null; stderr: string }> {
  const [uid, gid] = [METAD_UID, METAD_UID];
  const child = spawn(command[0] ?? '', command.slice(1), {
    ...{ uid, gid },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, stderr })));
}

async function ask(path: string): Promise<Answer> {
  return await askFromGuest(guest.namespace, path);
}

async function parameters(): Promise<unknown> {
  const answer = await ask(PARAMETERS);
  assert.equal(answer.status, 200, answer.body.toString());
  return JSON.parse(answer.body.toString());
}

const ADD = 'add, communication on, one parameter of each visibility';

test('the socket is private and the pid file names the daemon', async () => {
  assert.equal((await stat(socketPath)).mode & 0o777, 0o600);
  const pid = await readFile(join(lab.directory, 'ganeti-metad.pid'), 'utf8');
  const name = await readFile(`/proc/${pid.trim()}/comm`, 'utf8');
  assert.equal(name, 'ganeti-metad\n');
});

test('echo gives any text back, also beyond ASCII, also in pieces and many at once', async () => {
  for (const text of ['', 'abc', 'ü€ăĢ\u0103', '\x03"\\']) {
    assert.deepEqual(await client.call('echo', text), { success: true, result: text });
  }
  const bytes = Buffer.from('{"method": "echo", "args": ["x"]}\n\x03');
  for (const byte of bytes) client.send(Buffer.from([byte]));
  assert.deepEqual(await client.receive(), { success: true, result: 'x' });
  client.send(Buffer.concat([bytes, bytes, bytes]));
  for (let count = 0; count < 3; count++) {
    assert.deepEqual(await client.receive(), { success: true, result: 'x' });
  }
});

test('an instance that Ganeti adds is served to its guest', async () => {
  await assert.rejects(ask(PARAMETERS));
  await push(instanceOf(ADD));
  assert.deepEqual(await parameters(), {
    dhcp: ['yes', 'public'],
    'os-package': ['/srv/packages/pkg.tgz', 'public'],
    hostkey: ['KEY123', 'private'],
    rootpw: ['S3CRET', 'secret'],
  });
  const metaData = JSON.parse((await ask('/ganeti/latest/meta_data.json')).body.toString()) as Dict;
  assert.equal(metaData.name, 'inst1.example.com');
  assert.equal(metaData.instance_id, '1e6ca3fc-2e7c-4f35-89bb-480ed1e57569');
  const id = await ask('/latest/meta-data/instance-id');
  assert.equal(id.body.toString(), '1e6ca3fc-2e7c-4f35-89bb-480ed1e57569');
});

test('the guest’s device is logged as a Ganeti device', async () => {
  assert.match(await lab.logLine('ganeti.device'), /"device":"gnt\.com\.0"/);
});

test('a modify without secrets keeps the secrets of the instance', async () => {
  await push(instanceOf('modify private'));
  assert.deepEqual(await parameters(), {
    dhcp: ['no', 'public'],
    'os-package': ['/srv/packages/pkg.tgz', 'public'],
    hostkey: ['KEY456', 'private'],
    rootpw: ['S3CRET', 'secret'],
  });
});

test('private and secret parameters of a reinstall keep their visibility', async () => {
  await push({ ...instanceOf('reinstall with new parameters') });
  assert.deepEqual(await parameters(), {
    dhcp: ['re', 'public'],
    hostkey: ['K2', 'private'],
    rootpw: ['NEW', 'secret'],
  });
});

test('a guest reads no secrets of the former OS or the former installation', async () => {
  const withSecret = instanceOf('add, to be reinstalled with another OS');
  await push(withSecret);
  assert.deepEqual(await parameters(), {
    dhcp: ['yes', 'public'],
    hostkey: ['KEY123', 'private'],
    rootpw: ['S3CRET', 'secret'],
  });
  // Ganeti still sends the private parameters, and for the last time.
  await push(instanceOf('reinstall with another OS, no secrets'));
  assert.deepEqual(await parameters(), { hostkey: ['KEY123', 'private'] });
  await push(instanceOf('reinstall with a secret'));
  assert.deepEqual(await parameters(), { rootpw: ['NEW', 'secret'] });
  await push(instanceOf('reinstall with the same OS, no secrets'));
  assert.deepEqual(await parameters(), {});
  await push(instanceOf('reinstall with a secret'));
  await push(instanceOf('modify to another OS'));
  assert.deepEqual(await parameters(), {});
});

test('after a rename with two communication NICs both addresses reach their instance', async () => {
  await push(instanceOf('communication off then on again'));
  const name = await ask('/latest/meta-data/hostname');
  assert.equal(name.body.toString(), 'inst9.example.com');
});

test('an address that moves to another instance serves the new instance', async () => {
  const other = { ...instanceOf(ADD), uuid: '00000000-0000-4000-8000-000000000001', name: 'new' };
  await push(other);
  assert.equal((await ask('/latest/meta-data/hostname')).body.toString(), 'new');
});

test('an instance that loses its communication NIC is no longer served', async () => {
  await push({ ...instanceOf(ADD), uuid: '00000000-0000-4000-8000-000000000001', nics: [] });
  await assert.rejects(ask(PARAMETERS));
});

test('scripts are found by the OS’s name without its variant, and nowhere else', async () => {
  await push(instanceOf(ADD));
  assert.equal(
    (await ask('/ganeti/latest/os/scripts/create')).body.toString(),
    '#!/bin/sh\n# create\n',
  );
  assert.equal((await ask('/ganeti/latest/os/scripts/export')).status, 404);
  await push({ ...instanceOf(ADD), os: '../packages+x' });
  assert.equal((await ask('/ganeti/latest/os/scripts/create')).status, 404);
});

test('packages come from the administrator’s directory only', async () => {
  const withPackage = (path: string): Dict => ({
    ...instanceOf(ADD),
    osparams: { 'os-package': path, 'os-install-package': path },
  });
  const inside = join(lab.directory, 'packages/pkg.tgz');
  await push(withPackage(inside));
  assert.equal((await ask('/ganeti/latest/os/package')).body.toString(), 'package');
  const part = await askFromGuest(guest.namespace, '/ganeti/latest/os/os-install-package', {
    headers: { range: 'bytes=1-3' },
  });
  assert.equal(part.status, 206);
  assert.equal(part.body.toString(), 'ack');
  for (const path of [
    '/etc/passwd',
    join(lab.directory, 'packages/link'),
    join(lab.directory, 'packages'),
    join(lab.directory, 'packages/../ganeti-metad.pid'),
    '/dev/zero',
    'pkg.tgz',
    '',
  ]) {
    await push(withPackage(path));
    assert.equal((await ask('/ganeti/latest/os/package')).status, 404, path);
  }
});

test('bytes that a guest writes reach the queue of the host', async () => {
  await push(instanceOf(ADD));
  const written = await askFromGuest(guest.namespace, '/ganeti/latest/write', {
    method: 'POST',
    body: 'to the host',
  });
  assert.equal(written.status, 204);
  const queue = '/v1/instances/1e6ca3fc-2e7c-4f35-89bb-480ed1e57569/queue';
  assert.equal((await lab.control('GET', queue)).body.toString(), 'to the host');
});

test('wrong requests are refused with Ganeti’s messages, and the connection stays open', async () => {
  const bad = (instance: unknown): unknown => client.call('updateConfig', instance);
  const generic = (text: string): unknown => ({ success: false, result: ['GenericError', [text]] });
  const wrong = (text: string): unknown => generic(`Could not get instance parameters: ${text}`);
  assert.deepEqual(await client.call('nothing', 1), generic('No such method: nothing'));
  assert.deepEqual(await client.call('echo'), generic('RPC input: Unable to read 1 tuple'));
  assert.deepEqual(await client.call('echo', 5), generic('RPC input: Unable to read String'));
  assert.deepEqual(await bad([]), wrong('Expecting a dictionary'));
  assert.deepEqual(await bad({}), wrong('Could not find instance name'));
  assert.deepEqual(await bad({ name: 5 }), wrong('Name is not a string'));
  assert.deepEqual(await bad({ name: 'x' }), wrong("Could not find OS parameters key 'nics'"));
  assert.deepEqual(await bad({ name: 'x', nics: {} }), wrong('Instance nics is not an array'));
  const nic = { name: 'ganeti:communication:x' };
  assert.deepEqual(
    await bad({ name: 'x', nics: [nic] }),
    wrong('Could not find instance communication IP'),
  );
  assert.deepEqual(
    await bad({ name: 'x', nics: [{ ...nic, ip: 5 }] }),
    wrong('Instance communication IP is not a string'),
  );
  const refused = await bad({ ...instanceOf(ADD), osparams_secret: ['TOPSECRET'] });
  assert.deepEqual(refused, wrong('Instance osparams_secret is not a dictionary'));
  assert.equal((await ask('/latest/meta-data/hostname')).body.toString(), 'inst1.example.com');
});

test('a malformed request gets an answer without its content, and the connection ends', async () => {
  for (const text of [
    'TOPSECRET',
    '[]',
    '{"args":[]}',
    '{"method":"echo"}',
    '{"method":5,"args":[]}',
  ]) {
    using other = await LuxiClient.open(socketPath);
    other.send(`${text}\x03`);
    const answer = (await other.receive()) as { success: boolean; result: string };
    assert.equal(answer.success, false);
    assert.match(answer.result, /^Failed to parse request: /);
    assert.doesNotMatch(answer.result, /TOPSECRET/);
    assert.equal(await other.receive(), null);
  }
  assert.doesNotMatch(lab.log, /S3CRET|KEY123|TOPSECRET/);
});

test('a replaced TAP is served without another push', async () => {
  await lab.disconnect('gnt.com.0');
  await lab.connect(guest.namespace, { ...LINK, device: 'gnt.com.5' });
  assert.match(await lab.logLine('"device":"gnt.com.5"'), /ganeti\.device/);
  assert.equal((await ask('/latest/meta-data/hostname')).status, 200);
});

test('a second start is refused with the pid of the running daemon, which still answers', async () => {
  const pidFile = join(lab.directory, 'ganeti-metad.pid');
  const second = await execFileAs([
    ...[process.execPath, 'metad/main.ts', '--ganeti', '--ganeti-socket', socketPath],
  ]);
  assert.equal(second.status, 2, second.stderr);
  assert.match(second.stderr, new RegExp(`is already running, with pid ${lab.metadPid}\\b`));
  // Both kinds of locks that Ganeti's own daemons use on their pid files.
  const locks = `
import fcntl, sys
file = open(sys.argv[1], 'r+')
for lock in (fcntl.flock, fcntl.lockf):
    try:
        lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sys.exit('%s got it' % lock.__name__)
    except BlockingIOError:
        pass
`;
  const other = await execFileAs(['python3', '-c', locks, pidFile]);
  assert.equal(other.status, 0, other.stderr);
  assert.equal(await readFile(pidFile, 'utf8'), `${lab.metadPid}\n`);
  using again = await LuxiClient.open(socketPath);
  assert.deepEqual(await again.call('echo', 'still here'), { success: true, result: 'still here' });
});

test('SIGTERM removes neither a socket nor a pid file that another daemon has put there', async () => {
  const pidFile = join(lab.directory, 'ganeti-metad.pid');
  await rm(pidFile);
  await writeFile(pidFile, '1\n');
  await rm(socketPath);
  await writeFile(socketPath, "somebody else's");
  assert.equal(await lab.stopMetad(), 0);
  assert.equal(await readFile(pidFile, 'utf8'), '1\n');
  assert.equal(await readFile(socketPath, 'utf8'), "somebody else's");
  assert.deepEqual(await readdir(join(lab.directory, 'socket')), ['ganeti-metad']);
  await rm(pidFile);
  await rm(socketPath);
  await lab.startMetad();
});

test('SIGTERM removes the socket and the pid file', async () => {
  assert.equal(await lab.stopMetad(), 0);
  await assert.rejects(stat(socketPath), { code: 'ENOENT' });
  await assert.rejects(stat(join(lab.directory, 'ganeti-metad.pid')), { code: 'ENOENT' });
});
