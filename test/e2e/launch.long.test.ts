import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { makeOwnAuthority } from '../lab/own-authority.ts';
import { Shell } from './support/shell.ts';
import { packSshd } from './support/sshd-package.ts';

/**
 * From one command to a guest with a login, for a user with a catalogue and a key in an agent. Each
 * test continues from the state of the previous one, with one guest.
 */
const NAME = 'web1.example.com';
let lab: Lab;
let shell: Shell;
let closeServer = (): void => undefined;
/** Temporary folder of the commands. */
let temporary = '';
let files = '';

before(async () => {
  const image = await buildGuestImage({ log: () => undefined });
  lab = await createLab('gnt-launch');
  [temporary, files] = [join(lab.paths.root, 'tmp'), join(lab.paths.root, 'files')];
  for (const folder of [temporary, files, join(files, 'home')]) await mkdir(folder);
  await packSshd(files);
  const tls = await makeOwnAuthority(files);
  const served = new Map([
    ['/SUMS', `${image.sha256}  ${basename(image.path)}\n`],
    [
      '/images.yaml',
      `images: [{name: site/guest, url: ${basename(image.path)}, checksums: SUMS, user: debian}]`,
    ],
  ]);
  const server = createServer(tls, ({ url = '' }, response) => {
    if (url === `/${basename(image.path)}`) createReadStream(image.path).pipe(response);
    else response.writeHead(served.has(url) ? 200 : 404).end(served.get(url));
  });
  closeServer = () => {
    server.closeAllConnections();
    server.close();
  };
  const site = `https://127.0.0.1:${await listenOnLoopback(server)}`;
  await lab.startNode();
  shell = new Shell();
  await type(`cd '${files}'; export GNT_ROOT='${lab.paths.root}'`);
  await type(`export HOME='${join(files, 'home')}' PATH='${bin}':$PATH`);
  await type('eval $(ssh-agent) && ssh-keygen -qt ed25519 -N "" -f id && ssh-add -q id && rm id*');
  await type(`export TMPDIR='${temporary}'`);
  await type(`gnt-cluster modify --image-ca @${tls.certFile}`);
  await type(`gnt-image add site ${site}/images.yaml`);
});
const bin = join(import.meta.dirname, '../../node_modules/.bin');

after(async () => {
  await shell.run('ssh-agent -k');
  await shell[Symbol.asyncDispose]();
  closeServer();
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
});

/**
 * Runs a command without the shell's input.
 * @returns its output, if its status is as expected
 */
async function type(command: string, expected = 0): Promise<readonly string[]> {
  const { status, lines } = await shell.run(`{ ${command}\n} </dev/null`);
  assert.equal(status, expected, `${command}\n${lines.join('\n')}`);
  return lines;
}

async function info(): Promise<InstanceInfo> {
  const { stdout, stderr } = await lab.run('gnt-instance', ['info', '--json', NAME]);
  return instanceInfo.parse(JSON.parse(stdout || stderr));
}

test('one line makes a machine of a catalogue, waits for its cloud-init, and says how to log in', async () => {
  const told = await type(
    `gnt-instance launch -B memory=512,vcpus=1 --personalization-package sshd.tar.gz site/guest ${NAME}`,
  );
  assert.match(told.join('\n'), /^web1\.example\.com is ready: cloud-init is done$/m);
  const { nics, communication, ssh, boot } = await info();
  assert.deepEqual(
    nics.map(({ mode }) => mode),
    ['user'],
  );
  assert.deepEqual([communication, ssh.user, boot?.status], [true, 'debian', 'done']);
  const login = /^log in: (.*)$/.exec(told.at(-1) ?? '')?.[1];
  assert.ok(login, told.join('\n'));
  assert.deepEqual(await type(`${login} -- 'id -un; exit 3'`, 3), ['debian']);
});

test('commands run in the guest with their words and status, and files are the same on both sides', async () => {
  await type(`gnt-instance exec ${NAME} -- sh -c 'exit 7'`, 7);
  assert.deepEqual(
    await type(`echo in | gnt-instance exec ${NAME} -- sh -c 'cat; echo "$1"' x 'a  b'`),
    ['in', 'a  b'],
  );
  await type('head -c 3000000 /dev/urandom >there');
  await type(`gnt-instance push ${NAME} there /tmp/ && gnt-instance pull ${NAME} /tmp/there back`);
  assert.ok((await readFile(join(files, 'back'))).equals(await readFile(join(files, 'there'))));
});

test("another program of the guest with a key of its own is not taken for the guest's sshd", async () => {
  const other =
    'ssh-keygen -qt ed25519 -N "" -f /tmp/other && /usr/sbin/sshd -p 2222 -h /tmp/other -o PidFile=/tmp/other.pid';
  await type(`gnt-instance exec ${NAME} -- sh -c '${other}'`);
  const refused = await type(`gnt-instance ssh -p 2222 ${NAME} true`, 255);
  assert.match(refused.join('\n'), /Host key verification failed/);
});

test('a removed machine leaves no process, disk, key or temporary file', async () => {
  const of = (await info()).uuid;
  await type(`gnt-instance remove -f ${NAME}`);
  assert.deepEqual(await readdir(lab.paths.disksDir), []);
  assert.deepEqual(await readdir(temporary), []);
  const left = (await lab.processes()).filter(({ command }) => /qemu/.test(command));
  assert.deepEqual(left, []);
  assert.deepEqual(await type('gnt-instance known-hosts'), []);
  const { stdout } = await run('find', [lab.paths.root, '-name', `*${of}*`]);
  assert.equal(stdout, '');
});
