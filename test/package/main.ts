import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { messageOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { HOST_RELEASES, hostTree, type HostRelease } from '../lab/debian-releases.ts';
import { earlierPackage, LAST_SINGLE_PACKAGE, presentPackages } from './made-packages.ts';
import { SystemMachine } from './system-machine.ts';

/**
 * Tests the package on a minimal Debian with systemd, in a VM with TCG: install, start, upgrade,
 * reboot, remove and purge. `node test/package/main.ts [RELEASE…]`, as root; takes some minutes for
 * each release.
 */
const NAME = 'p1.example.com';
/** Files that a running system writes, and dpkg's database. */
const BOOKS =
  /^\/(var\/(lib\/(dpkg|apt|systemd)|log|cache|tmp)|tmp|root|run|etc\/(passwd|group|shadow|gshadow)-|etc\/\.pwd\.lock|etc\/(machine-id|ld\.so\.cache|resolv\.conf|mtab))(?=[ /])/;
const LIST = String.raw`find / -xdev -printf '%p %y %m %u:%g\n' | sort`;

const work = await mkdtemp(join(tmpdir(), 'gnt-package-try-'));
const releases = process.argv.slice(2);
for (const release of HOST_RELEASES) {
  if (releases.length > 0 && !releases.includes(release)) continue;
  await test(`Debian ${release}`, (t) => tryOn(release, t));
}
await rm(work, { recursive: true, force: true });

async function tryOn(release: HostRelease, t: TestContext): Promise<void> {
  const dist = await presentPackages(join(work, release));
  const earlier = await earlierPackage(LAST_SINGLE_PACKAGE);
  const { stdout: depends } = await run('dpkg-deb', ['--field', earlier, 'Depends']);
  await using machine = await SystemMachine.boot({
    tree: await hostTree(release, depends.trim().split(', ')),
    files: { 'root/earlier.deb': earlier, 'srv/dist': dist },
    // QEMU's emulation of cmpxchg16b crashes newer kernels.
    kernelArguments: release === 'bookworm' ? '' : 'clearcpuid=cx16',
  });
  const beganMs = performance.now();
  let failed: unknown;
  const step: Step = (name, work) =>
    t.test(name, async (subtest) => {
      if (failed !== undefined) return subtest.skip('a step before it failed');
      try {
        await work();
      } catch (error) {
        failed = error;
        const { output } = await machine.try('journalctl --no-pager -n 40 -u gnt-noded');
        process.stderr.write(`${name}: ${messageOf(error)}\n${output}\n`);
        throw error;
      } finally {
        const seconds = Math.round((performance.now() - beganMs) / 1000);
        process.stderr.write(`${seconds} s: ${name}\n`);
      }
    });
  await trySteps(machine, step, await readVersion(dist));
}

async function readVersion(dist: string): Promise<string> {
  const packages = await readFile(join(dist, 'Packages'), 'utf8');
  return /^Package: gnt\n(?:.+\n)*?Version: (.+)$/m.exec(packages)?.[1] ?? '';
}

type Step = (name: string, work: () => Promise<unknown>) => Promise<void>;

async function trySteps(machine: SystemMachine, step: Step, version: string): Promise<void> {
  let clean: readonly string[] = [];
  let pid = '';
  const files = async (): Promise<readonly string[]> =>
    (await machine.run(LIST)).split('\n').filter((line) => !BOOKS.test(line));
  const noneFailed = async (): Promise<void> =>
    assert.equal(await machine.run('systemctl --failed --no-legend --plain'), '');
  const machinePid = (): Promise<string> =>
    machine.run("grep -lz '/[q]emu-system' /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3");

  await step('a minimal system runs', async () => {
    assert.match(await machine.run('ps 2>&1 || readlink /proc/1/exe'), /systemd/);
    assert.equal(await machine.run('systemctl is-system-running --wait'), 'running');
    clean = await files();
  });

  await step(
    'an earlier package installs with what it depends on, and nothing starts',
    async () => {
      await machine.run('apt-get install -y --no-install-recommends /root/earlier.deb');
      assert.equal((await machine.try('systemctl is-active gnt-noded')).output, 'inactive');
      const { status, output } = await machine.try('gnt-instance list');
      assert.equal(status, 3, output);
      assert.match(output, /error\[NODED_UNREACHABLE\]/);
    },
  );

  await step('its service starts, and an instance of it', async () => {
    await machine.run('systemctl enable --now gnt-noded');
    // The unit of that release is active before the daemon answers.
    await machine.run('until gnt-instance list >/dev/null 2>&1; do sleep 1; done');
    await machine.run(
      `truncate -s 1M /root/image.raw && gnt-instance add --no-install --os-image /root/image.raw --no-nics -B memory=32M -s 8M -C yes -H accel=tcg ${NAME} && gnt-instance startup ${NAME}`,
    );
    pid = await machinePid();
    assert.match(pid, /^\d+$/);
  });

  await step('it is not removed from under a running instance', async () => {
    const { status, output } = await machine.try('apt-get remove -y gnt');
    assert.notEqual(status, 0);
    assert.match(output, /instances are running: shut them down first/);
    await machine.run('systemctl is-active gnt-noded');
  });

  await step('the upgrade ends with a daemon that answers, and the guest goes on', async () => {
    await machine.run(
      `echo 'deb [trusted=yes] file:/srv/dist ./' >/etc/apt/sources.list.d/gnt.list
      apt-get update -o Dir::Etc::sourcelist=sources.list.d/gnt.list -o Dir::Etc::sourceparts=/dev/null
      apt-get install -y --no-install-recommends gnt
      rm /etc/apt/sources.list.d/gnt.list`,
    );
    const listed = await machine.run(
      `dpkg-query -W -f '\${Version} \${Status}\n' gnt; gnt-instance list --no-headers -o name,status`,
    );
    assert.equal(listed, `${version} install ok installed\n${NAME} running`);
    assert.equal(await machinePid(), pid);
    assert.equal(await machine.run('dpkg --verify gnt gnt-metad gnt-common'), '');
    await noneFailed();
  });

  await step('commands answer', async () => {
    await machine.run('gnt-cluster info && gnt-node list && gnt-os list && gnt-job list');
    const { output } = await machine.try('gnt-node doctor');
    assert.match(output, /^ok +packages: /m);
    assert.doesNotMatch(output, /^error +(packages|user|namespace)/m);
  });

  await step('a daemon that is killed comes back, and `systemctl start` waits for it', async () => {
    await machine.run('systemctl kill --kill-whom=main --signal=KILL gnt-noded');
    await machine.run('sleep 3; systemctl start gnt-noded');
    assert.match(await machine.run(`gnt-instance list --no-headers -o status`), /^running$/);
    assert.equal(await machinePid(), pid);
  });

  await step('a reboot brings all of it back', async () => {
    const before = await machine.run('cat /proc/sys/kernel/random/boot_id');
    await machine.reboot();
    assert.notEqual(await machine.run('cat /proc/sys/kernel/random/boot_id'), before);
    await machine.run('systemctl start gnt-noded');
    const running = `gnt-instance list --no-headers -o status | grep -qx running`;
    await machine.run(`for try in $(seq 100); do ${running} && exit; sleep 2; done; exit 1`);
    assert.match(await machinePid(), /^\d+$/);
    await noneFailed();
  });

  await step('removed, it leaves no process and no unit, and keeps what it was given', async () => {
    await machine.run(`gnt-instance shutdown --timeout=0 ${NAME} && apt-get remove -y gnt`);
    assert.equal(await machine.run("grep -l '[g]nt' /proc/[0-9]*/cmdline 2>/dev/null || true"), '');
    assert.equal((await machine.try('systemctl is-enabled gnt-noded 2>/dev/null')).status === 0, false); // prettier-ignore
    assert.match(await machine.run('ls /var/lib/gnt/disks'), /^[0-9a-f-]{36}$/);
    await noneFailed();
  });

  await step('purged, it leaves the system as it was', async () => {
    await machine.run('apt-get purge -y --autoremove gnt');
    assert.deepEqual(await files(), clean);
    assert.equal(await machine.run('grep gnt /etc/passwd /etc/group || true'), '');
    assert.equal(await machine.run('ls /run/netns 2>/dev/null || true'), '');
    await noneFailed();
  });
}
