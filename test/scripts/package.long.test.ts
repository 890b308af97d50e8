import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { run, type RunResult } from '#shared/process/run.ts';
import { debianTree } from '../lab/cached-tree.ts';

const top = join(import.meta.dirname, '../..');
const PACKAGES = ['bash-completion', 'libatomic1', 'logrotate', 'systemd'];
const BUILD_TIMEOUT_MS = 15 * 60_000;
const START_LIMIT_MS = 60_000;

let work = '';
let root = '';
let deb = '';
let clean: readonly string[] = [];

before(async () => {
  work = await mkdtemp('/tmp/gp');
  await run(process.execPath, [join(top, 'scripts/package.ts'), work], {
    timeoutMs: BUILD_TIMEOUT_MS,
    env: { PATH: process.env['PATH'] ?? '' },
  });
  const made = (await readdir(work)).find((name) => name.endsWith('.deb'));
  assert.ok(made);
  root = join(work, 'root');
  // cp(1): copies a whole root with its owners, links and modes.
  await run('cp', ['-a', await debianTree('debian-minimal', PACKAGES), root]);
  deb = join(root, made);
  await rename(join(work, made), deb);
  clean = await listFiles();
});
after(() => rm(work, { recursive: true, force: true }));

/** Runs a command in the root, in its own namespaces: no process and no mount remains. */
function inRoot(...command: readonly string[]): Promise<RunResult> {
  const contained = ['--mount', '--net', '--pid', '--fork', '--kill-child=KILL'];
  const enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"';
  return run('unshare', [...contained, 'sh', '-c', enter, root, ...command], {
    timeoutMs: 120_000,
    env: { HOME: '/root' },
  });
}

/** Lists every path below the root with its mode and owner, except dpkg's database. */
async function listFiles(): Promise<readonly string[]> {
  const books = /^\.\/var\/(lib\/dpkg|log|cache)\b|^\.\/etc\/(passwd|group|shadow|gshadow)-/;
  const { stdout } = await run('find', ['.', '-printf', '%p %m %u:%g\n'], { cwd: root });
  return stdout
    .split('\n')
    .filter((line) => !books.test(line))
    .sort();
}

test('the package depends on QEMU and nftables, and every dependency is installed on this Debian', async () => {
  const { stdout } = await run('dpkg-deb', ['--field', deb, 'Depends']);
  const needed = stdout.trim().split(', ');
  assert.ok(needed.includes('qemu-system-x86') && needed.includes('nftables'), stdout);
  for (const name of needed) {
    const { stdout: state } = await run('dpkg-query', ['-W', '-f', '${Status}', name]);
    assert.match(state, /ok installed/, name);
  }
});

test('the package has at most 40 MB, and at most 130 MB unpacked', async () => {
  const { stdout } = await run('dpkg-deb', ['--contents', deb]);
  const unpacked = stdout.split('\n').reduce((sum, line) => sum + Number(line.split(/\s+/)[2]), 0);
  assert.ok((await stat(deb)).size <= 40e6, `${(await stat(deb)).size} bytes`);
  assert.ok(unpacked > 100e6 && unpacked <= 130e6, `${unpacked} bytes unpacked`);
});

const WITHOUT_LINTIAN = existsSync('/usr/bin/lintian') ? false : 'lintian is not installed';

test('lintian reports nothing', { skip: WITHOUT_LINTIAN }, async () => {
  const found = await run('lintian', ['--allow-root', '--fail-on', 'none', deb], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  assert.equal(found.stdout, '');
});

test('the package installs on a clean Debian, its programs run, and its files are valid', async () => {
  // Skips its dependencies, which are large and not needed here.
  await inRoot('dpkg', '--force-depends', '--install', `/${deb.slice(root.length + 1)}`);
  assert.equal((await stat(root)).mode & 0o777, 0o755, 'the mode of / is none of its business');
  assert.match((await inRoot('gnt-instance', '--help')).stdout, /^Usage: gnt-instance/);
  for (const program of ['gnt-noded', 'gnt-metad', 'gnt-instance', 'gnt-os', 'gnt-job']) {
    assert.match((await inRoot(program, '--version')).stdout, /^\d+\.\d+\.\d+$/, program);
  }
  await assert.rejects(inRoot('gnt-instance', 'list'), (error: Error) => {
    assert.match(JSON.stringify(error), /NODED_UNREACHABLE/);
    return true;
  });
  await inRoot('bash', '-n', '/usr/share/bash-completion/completions/gnt-instance');
  for (const page of ['man8/gnt-instance.8', 'man8/gnt-instance-launch.8', 'man5/gnt-hooks.5'])
    await inRoot('gzip', '-t', `/usr/share/man/${page}.gz`);
  await inRoot('logrotate', '--debug', '/etc/logrotate.d/gnt');
  assert.match((await inRoot('getent', 'passwd', 'gnt-metad')).stdout, /^gnt-metad:/);
  const verified = await inRoot('dpkg', '--verify', 'gnt');
  assert.equal(verified.stdout, '');
});

test('the installed daemon works: doctor, add, startup, remove', async () => {
  const nodeRoot = await mkdtemp('/tmp/gq');
  const env = { GNT_ROOT: nodeRoot };
  const gnt = (program: string, ...args: string[]): Promise<RunResult> =>
    run(join(root, 'usr/sbin', program), args, { env, timeoutMs: 120_000 });
  const noded = spawn(join(root, 'usr/sbin/gnt-noded'), ['--node', 'node1'], {
    env: { PATH: process.env['PATH'], HOME: homedir(), ...env },
    stdio: 'ignore',
  });
  const ended = once(noded, 'exit');
  try {
    const deadlineMs = performance.now() + START_LIMIT_MS;
    const socket = createRootPaths(nodeRoot).nodedSocket;
    for (;;) {
      assert.equal(noded.exitCode, null, 'gnt-noded ended');
      assert.ok(performance.now() < deadlineMs, 'gnt-noded did not start');
      if ((await stat(socket).catch(() => null)) !== null) break;
      await sleep(200);
    }
    await gnt('gnt-node', 'doctor');
    const image = join(nodeRoot, 'image.raw');
    await writeFile(image, Buffer.alloc(1024 * 1024));
    const add = ['add', '--no-install', '--os-image', image, '-s', '8M', '-B', 'memory=64M'];
    await gnt('gnt-instance', ...add, '-C', 'yes', '-H', 'accel=tcg', 'p1');
    await gnt('gnt-instance', 'startup', 'p1');
    const listed = await gnt('gnt-instance', 'list', '--no-headers', '-o', 'status');
    assert.equal(listed.stdout, 'running');
    await gnt('gnt-instance', 'remove', '-f', '--shutdown-timeout', '0', 'p1');
  } finally {
    // A guest outlives the daemon, also after a failure.
    await gnt('gnt-instance', 'remove', '-f', '--shutdown-timeout', '0', 'p1').catch(() => null);
    noded.kill('SIGTERM');
    await ended;
    await rm(nodeRoot, { recursive: true, force: true });
  }
});

test('the package cannot be removed while an instance runs', async () => {
  const machine = join(root, 'run/gnt/vm/00000000-0000-4000-8000-000000000000');
  await mkdir(machine, { recursive: true });
  await assert.rejects(inRoot('dpkg', '--remove', 'gnt'));
  await inRoot('gnt-instance', '--version');
  await rm(join(root, 'run/gnt/vm'), { recursive: true });
});

test('a purge leaves only exports', async () => {
  await cp(join(root, 'etc/hostname'), join(root, 'var/lib/gnt/store.sqlite'));
  await writeFile(join(root, 'var/log/gnt/metad.log'), 'line\n');
  const backup = join(root, 'srv/ganeti/export/web1');
  await mkdir(backup, { recursive: true });
  await writeFile(join(backup, 'config.ini'), '[export]\n');
  await inRoot('dpkg', '--purge', 'gnt');
  assert.deepEqual(await readdir(backup), ['config.ini']);
  await rm(join(root, 'srv/ganeti'), { recursive: true });
  assert.deepEqual(await listFiles(), clean);
});
