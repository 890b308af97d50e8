import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import { NO_CORE_BYTES } from '#shared/sys/forbid-cores.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';

const top = join(import.meta.dirname, '../../../..');
const folder = join(top, 'noded/host/systemd');
const START_LIMIT_MS = 60_000;
let work = '';
let unit = '';

before(async () => {
  work = await mkdtemp('/tmp/gnt-unit-');
  unit = await readFile(join(folder, 'gnt-noded.service'), 'utf8');
});
after(() => rm(work, { recursive: true, force: true }));

/** A unit as it would be installed, but for the place of the program. */
async function writeUnit(name = 'gnt-noded'): Promise<string> {
  const path = join(work, `${name}.service`);
  const text = await readFile(join(folder, `${name}.service`), 'utf8');
  await writeFile(path, text.replace(`/usr/sbin/${name}`, join(top, 'scripts/gnt')));
  return path;
}

function directive(name: string): string {
  const value = new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
  assert.ok(value !== undefined, name);
  return value;
}

test('systemd-analyze accepts every line of the units', async () => {
  for (const name of ['gnt-noded', 'gnt-metad']) {
    const path = await writeUnit(name);
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', path]);
    const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line.includes(name));
    assert.deepEqual(complaints, []);
  }
});

test('the unit kills only the main process when it stops, and has no mount namespace', () => {
  assert.equal(directive('KillMode'), 'process');
  assert.equal(directive('OOMPolicy'), 'continue');
  const own =
    /^(Private\w+|Protect(System|Home|Clock|Kernel\w+|ControlGroups|Hostname|Proc)|ReadWritePaths|BindPaths|TemporaryFileSystem)=/m;
  assert.doesNotMatch(
    unit,
    own,
    'a mount namespace of its own would hide /run/netns from the host',
  );
});

test('the unit sets neither LockPersonality nor a UMask that excludes other users', () => {
  assert.doesNotMatch(unit, /^LockPersonality=/m, 'setarch builds the snapshot of the agent');
  assert.doesNotMatch(unit, /^UMask=0?077/m, 'dnsmasq and QEMU read files of the daemon');
});

test('the unit disables swap and limits core dumps', () => {
  assert.equal(directive('MemorySwapMax'), '0');
  assert.equal(directive('LimitCORE'), String(NO_CORE_BYTES));
});

const RECEIVE = `import socket, sys
service = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
service.bind(sys.argv[1])
print('bound', end='', flush=True)
print(service.recv(100).decode(), end='', flush=True)`;

test('the daemon sends READY=1 when it answers requests', async () => {
  assert.equal(directive('Type'), 'notify');
  const root = await mkdtemp('/tmp/gu');
  const notify = join(root, 'notify');
  // Node has no datagram sockets of this kind.
  const listener = spawn('python3', ['-c', RECEIVE, notify], { stdio: 'pipe' });
  await once(listener.stdout, 'data');
  const told = once(listener.stdout, 'data', { signal: AbortSignal.timeout(START_LIMIT_MS) });
  const noded = spawn(join(top, 'node_modules/.bin/gnt-noded'), ['--node', 'node1'], {
    env: { ...process.env, GNT_ROOT: root, NOTIFY_SOCKET: notify },
    stdio: 'ignore',
  });
  const ended = once(noded, 'exit');
  try {
    assert.equal(String(await Promise.race([told, ended])), 'READY=1');
    await run(join(top, 'node_modules/.bin/gnt-instance'), ['list'], { env: { GNT_ROOT: root } });
  } finally {
    noded.kill('SIGTERM');
    await ended;
    const gone = once(listener, 'exit');
    if (listener.exitCode === null && listener.kill()) await gone;
    await rm(root, { recursive: true, force: true });
  }
});

test('systemd creates the users and folders of the daemon under any root', async () => {
  const root = join(work, 'root');
  await mkdir(join(root, 'etc'), { recursive: true });
  await copyFile('/etc/passwd', join(root, 'etc/passwd'));
  await copyFile('/etc/group', join(root, 'etc/group'));
  await run('systemd-sysusers', [`--root=${root}`, join(folder, 'gnt.sysusers')]);
  const passwd = await readFile(join(root, 'etc/passwd'), 'utf8');
  assert.match(passwd, /^gnt-metad:.*nologin$/m);
  await run('systemd-tmpfiles', [`--root=${root}`, '--create', join(folder, 'gnt.tmpfiles')]);
  const paths = createRootPaths(root);
  for (const [path, mode] of [
    [paths.runDir, 0o755],
    [paths.stateDir, 0o755],
    [paths.disksDir, 0o700],
    [paths.logDir, 0o700],
  ] as const) {
    assert.equal((await stat(path)).mode & 0o777, mode, path);
  }
});

test('the daemon runs instances without the capabilities and privileges that the unit drops', async () => {
  const dropped = directive('CapabilityBoundingSet').replace(/^~/, '').split(' ');
  const bounding = dropped.map((name) => `-${name.replace(/^CAP_/, '').toLowerCase()}`).join(',');
  const root = await mkdtemp('/tmp/gu');
  const environment = { ...process.env, GNT_ROOT: root };
  const noded = spawn(
    'setpriv',
    [
      '--no-new-privs',
      `--bounding-set=${bounding}`,
      join(top, 'node_modules/.bin/gnt-noded'),
      '--node',
      'node1',
    ],
    { env: environment, stdio: 'ignore' },
  );
  const ended = once(noded, 'exit');
  const gnt = (program: string, ...args: string[]): ReturnType<typeof run> =>
    run(join(top, 'node_modules/.bin', program), args, { env: { GNT_ROOT: root } });
  try {
    const socket = createRootPaths(root).nodedSocket;
    const deadlineMs = performance.now() + START_LIMIT_MS;
    const isThere = (): Promise<boolean> =>
      stat(socket).then(
        () => true,
        () => false,
      );
    while (!(await isThere())) {
      assert.equal(noded.exitCode, null, 'gnt-noded ended');
      assert.ok(performance.now() < deadlineMs, 'gnt-noded did not start');
      await sleep(200);
    }
    const status = await readFile(`/proc/${noded.pid}/status`, 'utf8');
    assert.match(status, /^NoNewPrivs:\t1$/m);
    await gnt('gnt-node', 'doctor');
    const image = join(root, 'image.raw');
    await writeFile(image, Buffer.alloc(1024 * 1024));
    await chmod(image, 0o644);
    const add = ['add', '--no-install', '--os-image', image, '-s', '8M', '-B', 'memory=64M'];
    await gnt('gnt-instance', ...add, '-C', 'yes', '-H', 'accel=tcg', 'u1');
    await gnt('gnt-instance', 'startup', 'u1');
    assert.equal(
      (await gnt('gnt-instance', 'list', '--no-headers', '-o', 'status')).stdout,
      'running',
    );
    await gnt('gnt-instance', 'remove', '-f', '--shutdown-timeout', '0', 'u1');
  } finally {
    // A guest outlives the daemon: after a failure it is still there.
    await gnt('gnt-instance', 'remove', '-f', '--shutdown-timeout', '0', 'u1').catch(() => null);
    noded.kill('SIGTERM');
    await ended;
    await rm(root, { recursive: true, force: true });
  }
});
