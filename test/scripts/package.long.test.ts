import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { CommandFailed, run, type RunResult } from '#shared/process/run.ts';
import { debianTree } from '../lab/cached-tree.ts';
import { ganetiTree, HOST_RELEASES } from '../lab/debian-releases.ts';
import {
  earlierPackage,
  LAST_SINGLE_PACKAGE,
  presentPackages,
  whyNoEarlier,
} from '../package/made-packages.ts';

const PACKAGES = ['bash-completion', 'libatomic1', 'logrotate', 'systemd'];
const BUILD_TIMEOUT_MS = 15 * 60_000;
const START_LIMIT_MS = 60_000;

/** In the order in which they are installed. */
const NAMES = ['gnt-common', 'gnt-metad', 'gnt'] as const;

let work = '';
/** The archive for apt that the build makes. */
let dist = '';
/** A clean Debian. */
let root = '';
let version = '';
let clean: readonly string[] = [];

before(async () => {
  work = await mkdtemp('/tmp/gp');
  await chmod(work, 0o755);
  dist = await presentPackages(join(work, 'dist'));
  root = await copyTree(await debianTree('debian-minimal', PACKAGES), 'root');
  const { stdout } = await run('dpkg-deb', ['--field', debOf('gnt'), 'Version']);
  version = stdout.trim();
  clean = await listFiles(root);
});
after(() => rm(work, { recursive: true, force: true }));

/** Copies a whole root with its owners, links and modes. */
async function copyTree(tree: string, name: string): Promise<string> {
  const copy = join(work, name);
  await run('cp', ['-a', tree, copy], { timeoutMs: BUILD_TIMEOUT_MS });
  return copy;
}

function debOf(name: string): string {
  const found = readdirSync(dist).find((file) => file.startsWith(`${name}_`));
  assert.ok(found, name);
  return join(dist, found);
}

/**
 * Runs a command in a root, in its own namespaces: no process and no mount remains. The archive is
 * at /mnt there.
 */
function inTree(tree: string, ...command: readonly string[]): Promise<RunResult> {
  const contained = ['--mount', '--net', '--uts', '--pid', '--fork', '--kill-child=KILL'];
  const enter = `mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind "$1" "$0/mnt" &&
    ip link set lo up && hostname localhost && root="$0" && shift && exec chroot "$root" "$@"`;
  return run('unshare', [...contained, 'sh', '-c', enter, tree, work, ...command], {
    timeoutMs: 180_000,
    env: { HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' },
  });
}

const inRoot = (...command: readonly string[]): Promise<RunResult> => inTree(root, ...command);

/** Dependencies such as QEMU are large and not needed here. */
function install(tree: string, ...debs: readonly string[]): Promise<RunResult> {
  const paths = debs.map((deb) => `/mnt${deb.slice(work.length)}`);
  return inTree(tree, 'dpkg', '--auto-deconfigure', '--force-depends', '--install', ...paths);
}

/** Lists every path below a root with its mode and owner, except dpkg's database. */
async function listFiles(tree: string): Promise<readonly string[]> {
  const books =
    /^\.\/(dev|var\/(lib\/(dpkg|apt)|log|cache))\b|^\.\/etc\/(passwd|group|shadow|gshadow)-/;
  const { stdout } = await run('find', ['.', '-printf', '%p %m %u:%g\n'], { cwd: tree });
  return stdout
    .split('\n')
    .filter((line) => !books.test(line))
    .sort();
}

test('gnt depends on QEMU and nftables, and every dependency is installed on this Debian', async () => {
  const { stdout } = await run('dpkg-deb', ['--field', debOf('gnt'), 'Depends']);
  const needed = stdout.trim().split(', ');
  assert.ok(needed.includes('qemu-system-x86') && needed.includes('nftables'), stdout);
  for (const own of ['gnt-common', 'gnt-metad'])
    assert.ok(needed.includes(`${own} (= ${version})`));
  for (const name of needed.filter((each) => !each.startsWith('gnt-'))) {
    const { stdout: state } = await run('dpkg-query', ['-W', '-f', '${Status}', name]);
    assert.match(state, /ok installed/, name);
  }
});

test('the packages have at most 40 MB, and at most 130 MB unpacked', async () => {
  let [packed, unpacked] = [0, 0];
  for (const name of NAMES) {
    const { stdout } = await run('dpkg-deb', ['--contents', debOf(name)]);
    unpacked += stdout.split('\n').reduce((sum, line) => sum + Number(line.split(/\s+/)[2]), 0);
    packed += (await stat(debOf(name))).size;
  }
  assert.ok(packed <= 40e6, `${packed} bytes`);
  assert.ok(unpacked > 100e6 && unpacked <= 130e6, `${unpacked} bytes unpacked`);
});

const WITHOUT_LINTIAN = existsSync('/usr/bin/lintian') ? false : 'lintian is not installed';

test('lintian reports nothing', { skip: WITHOUT_LINTIAN }, async () => {
  const debs = NAMES.map(debOf);
  const found = await run('lintian', ['--allow-root', '--fail-on', 'none', ...debs], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  assert.equal(found.stdout, '');
});

const skip = await whyNoEarlier(LAST_SINGLE_PACKAGE);
test('the packages take the place of the earlier one', { skip }, async () => {
  const earlier = await earlierPackage(LAST_SINGLE_PACKAGE);
  await cp(earlier, join(work, 'earlier.deb'));
  await install(root, join(work, 'earlier.deb'));
  assert.match((await inRoot('dpkg', '-S', '/usr/sbin/gnt-metad')).stdout, /^gnt: /);
  await install(root, ...NAMES.map(debOf));
});

test('each file belongs to its package, and the installed programs run', async () => {
  if (skip !== false) await install(root, ...NAMES.map(debOf));
  for (const [owner, path] of [
    ['gnt-metad', '/usr/sbin/gnt-metad'],
    ['gnt-common', '/usr/lib/gnt/node_modules/.bin/node'],
    ['gnt', '/usr/sbin/gnt-instance'],
  ] as const)
    assert.equal((await inRoot('dpkg', '-S', path)).stdout.trim(), `${owner}: ${path}`);
  for (const name of NAMES) {
    const { stdout } = await inRoot('dpkg-query', '-W', '-f', '${Version} ${Status}', name);
    assert.equal(stdout, `${version} install ok installed`);
  }
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
  assert.equal((await inRoot('dpkg', '--verify', ...NAMES)).stdout, '');
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
  await inRoot('dpkg', '--purge', 'gnt', 'gnt-metad', 'gnt-common');
  assert.deepEqual(await readdir(backup), ['config.ini']);
  await rm(join(root, 'srv/ganeti'), { recursive: true });
  assert.deepEqual(await listFiles(root), clean);
});

for (const release of HOST_RELEASES) {
  test(`gnt-metad installs beside Ganeti on Debian ${release}, takes over and goes again`, async (t) => {
    const tree = await copyTree(await ganetiTree(release), release);
    await writeFile(
      join(tree, 'etc/apt/sources.list.d/gnt.list'),
      'deb [trusted=yes] file:/mnt/dist ./\n',
    );
    await inTree(tree, '/usr/lib/ganeti/ensure-dirs');
    const before = await listFiles(tree);
    const shell = async (script: string): Promise<string> =>
      (await inTree(tree, 'sh', '-ec', script)).stdout;
    // The other archives stay as they were fetched: there is no network.
    const update =
      'apt-get -o Dir::Etc::sourcelist=sources.list.d/gnt.list -o Dir::Etc::sourceparts=/dev/null -o APT::Get::List-Cleanup=0 update';

    await t.test('apt installs it from the folder, and Ganeti stays', async () => {
      const said = await shell(`${update} >/dev/null; apt-get install -y gnt-metad`);
      assert.match(said, /^gnt-metad: Ganeti's own ganeti-metad still serves/m);
      assert.match(said, /^ {2}systemctl enable --now gnt-metad$/m);
      assert.match(await shell("dpkg-query -W -f '${Status}' ganeti"), /ok installed/);
      assert.equal(
        await shell('dpkg --verify gnt-metad gnt-common ganeti | grep -v /usr/share/ || true'),
        '',
      );
      assert.equal(await shell('gnt-metad --version'), version);
      assert.match(await shell('dpkg -S /usr/sbin/gnt-instance'), /^ganeti: /);
    });

    await t.test('gnt is refused beside ganeti, by dpkg and by apt', async () => {
      const refused = async (script: string, reason: RegExp): Promise<void> => {
        await assert.rejects(shell(script), (error) => {
          assert.ok(error instanceof CommandFailed);
          assert.match(error.stderr, reason);
          return true;
        });
      };
      await refused(
        `dpkg --install /mnt/dist/${basename(debOf('gnt'))}`,
        /gnt conflicts with ganeti/,
      );
      await refused('apt-get install -y --no-remove gnt', /remove is disabled/);
      assert.match(await shell('apt-get install --simulate gnt'), /^Remv ganeti /m);
      assert.match(await shell("dpkg-query -W -f '${Status}' ganeti"), /ok installed/);
    });

    await t.test(
      "its unit takes over from ganeti-metad, and Ganeti's scripts know it",
      async () => {
        await shell(TAKE_OVER);
      },
    );

    await t.test('a purge leaves Ganeti as it was', async () => {
      await shell('apt-get purge -y --autoremove gnt-metad');
      assert.deepEqual(await listFiles(tree), before);
      assert.match(await shell('getent passwd gnt-metad'), /^gnt-metad:/);
    });
  });
}

/**
 * Starts Ganeti's daemon as its node daemon does, then the service as its unit does. systemd itself
 * is not in a chroot.
 */
const TAKE_OVER = String.raw`
pid_file=/run/ganeti/ganeti-metad.pid
log=/var/log/ganeti/meta-daemon.log
wait_for() { for try in $(seq 200); do if eval "$1" 2>/dev/null; then return; fi; sleep 0.1; done; echo "never: $1" >&2; cat /tmp/err $log >&2; exit 1; }
program() { tr '\0' ' ' </proc/$(cat $pid_file)/cmdline; }
/usr/lib/ganeti/daemon-util start ganeti-metad </dev/null >/dev/null 2>&1
wait_for '[ -s $pid_file ]'
program | grep -q /usr/sbin/ganeti-metad
unit=/usr/lib/systemd/system/gnt-metad.service
systemd-analyze verify --man=no $unit 2>&1 | grep gnt-metad >&2 && exit 1
echo 'METAD_ARGS="-d --no-user-checks -p 8080"' >>/etc/default/ganeti
. /etc/default/ganeti
start() {
  sed -n 's/^ExecStartPre=-+//p' $unit | while read -r command; do $command; done
  setpriv --reuid gnt-metad --regid gnt-metad --init-groups --no-new-privs     $(sed -n 's/^ExecStart=\([^$]*\).*/\1/p' $unit) $METAD_ARGS </dev/null >/tmp/err 2>&1 &
  wait_for '[ -s $pid_file ] && grep -q ganeti-metad /proc/$(cat $pid_file)/comm && grep -q metad.ready $log'
}
start
[ "$(stat -c %U:%a $log)" = gnt-metad:600 ]
/usr/lib/ganeti/daemon-util check ganeti-metad
first=$(cat $pid_file)
logrotate --force /etc/logrotate.d/ganeti
wait_for 'grep -q metad.log-reopened $log'
grep -q metad.ready $log.1
[ "$(cat $pid_file)" = "$first" ]
/usr/lib/ganeti/daemon-util stop ganeti-metad
[ ! -e $pid_file ] && [ ! -d /proc/$first ]
start
/usr/lib/ganeti/daemon-util stop ganeti-metad
# The way back: Ganeti starts its own daemon when it finds none.
/usr/lib/ganeti/daemon-util start ganeti-metad </dev/null >/dev/null 2>&1
wait_for '[ -s $pid_file ]'
program | grep -q /usr/sbin/ganeti-metad
/usr/lib/ganeti/daemon-util stop ganeti-metad
sed -i /METAD_ARGS/d /etc/default/ganeti
# Made by this test.
rm -rf /tmp/err /run/systemd /var/lib/logrotate/status
`;
