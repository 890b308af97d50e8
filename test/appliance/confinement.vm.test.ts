import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstallEvent } from '#shared/contract/install-event.ts';
import { AgentWord } from '../../noded/provision/appliance/agent-word.ts';
import { type ApplianceRun, bootAppliance } from './support/boot-appliance.ts';
import { buildTestAppliance } from './support/build-test-appliance.ts';

/**
 * Confinement of hostile scripts that needs a virtual machine: the kernel's own barriers, and
 * limits.
 */
const DISK_BYTES = 64 * 1024 * 1024;
let directory = '';
let applianceDir = '';
let run: ApplianceRun;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-confinement-test-'));
  applianceDir = await buildTestAppliance(directory);
  run = await bootHostile();
});
after(() => rmSync(directory, { recursive: true }));

function shell(command: string): string {
  return execFileSync('sh', ['-c', command], { cwd: directory, encoding: 'utf8' });
}

/** Leaves a root directory for the initramfs below, in a process that may change its own root. */
const ESCAPE = 'mkdir "/tmp/out"; chroot "/tmp/out"; chdir ".." for 1 .. 99; chroot ".";';
/** A helper that the kernel would run when a program crashes. */
const HELPER = `#!/bin/busybox sh
b=/bin/busybox
for each in /proc/[0-9]*; do
  $b grep -q agent.blob $each/cmdline 2>/dev/null || continue
  if (: <$each/mem) 2>/dev/null; then echo helper read the agent; else echo helper refused; fi >/dev/ttyS0
done
`;
/** Each line is printed only by a successful attack. */
const ATTACKS = `
head -c 1 /proc/kcore >/dev/null 2>&1 && echo "read the kernel's memory"
head -c 1 /dev/mem >/dev/null 2>&1 && echo "read the machine's memory"
mount -t tracefs none /media 2>/dev/null; head -c 1 /media/kprobe_events >/dev/null 2>&1 && echo traced
modprobe nfs 2>/dev/null && echo loaded a module
mkdir -p /evil && mount -t cgroup2 none /evil 2>/dev/null && (ls /evil/memory.max || ls -d /evil/agent) 2>/dev/null && echo saw the limits
mount -t securityfs none /evil 2>/dev/null && (echo none >/evil/lockdown) 2>/dev/null && echo unlocked the kernel
perl -e 'print "used bpf\\n" if syscall(321, 0, 0, 0) != -1 || $! != 1'
perl -e '${ESCAPE} for (glob "/proc/[0-9]*") { open(F, "<", "$_/cmdline") or next; my $c = <F>; next if $c !~ /agent.blob/ || $c =~ /perl/; $seen++; print "opened the agent\\n" if open(M, "<", "$_/mem"); print "entered the agent\\n" if open(N, "<", "$_/ns/mnt") } print "found no agent\\n" if !$seen; print "reached the agent\\x27s files\\n" if -d "/root/run/gnt/cgroup" || -d "/root/run/gnt/target"'
cat >/tmp/helper <<'END'
${HELPER}END
perl -e 'open(I, "<", "/tmp/helper"); my $h = join "", <I>; ${ESCAPE} open(O, ">", "/helper") and print O $h and close O; chmod 0755, "/helper"; open(C, ">", "/proc/sys/kernel/core_pattern") and print C "|/helper"; close C'
bash -c 'ulimit -c unlimited; sh -c "kill -SEGV \\$\\$"; true' 2>/dev/null
`;

function definition(): Buffer {
  mkdirSync(join(directory, 'os/untrusted'), { recursive: true });
  const script = `#!/bin/bash
exec 2>&1
curl -s -d '[{"type":"result","atMs":1,"outcome":{"status":"success"}}]' http://169.254.169.254/ganeti/latest/install/events
curl -s -d '[{"sequence":9,"body":"{}","mac":"${'0'.repeat(64)}"}]' http://169.254.169.254/ganeti/latest/install/events
${ATTACKS}
mkdir -p /srv/left && mount /dev/disk/by-id/virtio-disk0 /srv/left && touch /srv/left/from-script
setsid sh -c 'sleep 2; while :; do date >/srv/left/later; done' >/dev/null 2>&1 &
echo done
`;
  writeFileSync(join(directory, 'os/untrusted/create'), script, { mode: 0o755 });
  shell('tar -C os -cf os.tar .');
  return readFileSync(join(directory, 'os.tar'));
}

/** Failures that the installation survives, to read their messages. */
const HOOKS = `
stages:
  install.pre:
    - name: eats
      optional: true
      commands: [tail /dev/zero]
    - name: forks
      optional: true
      commands: ['mkfifo /tmp/never; while :; do (read line </tmp/never) & done 2>/dev/null']
  after-install:
    - commands: ['test ! -e "$GNT_TARGET/later" && cat "$GNT_TARGET/etc/added"']
`;

function logOf(events: readonly InstallEvent[], stage: string): readonly string[] {
  return events.flatMap((event) =>
    event.type === 'log' && event.stage === stage ? [event.line] : [],
  );
}

async function bootHostile(): Promise<ApplianceRun> {
  shell(`mkdir -p tree/etc package/etc && echo ID=test >tree/etc/os-release && echo added >package/etc/added
    truncate -s 48M image && mke2fs -q -t ext4 -d tree image && tar -C package -czf package.tgz .
    : >disk`);
  truncateSync(join(directory, 'disk'), DISK_BYTES);
  const image = join(directory, 'image');
  const hooks = { source: 'cluster', name: 'hooks.yaml', content: btoa(HOOKS) };
  return await bootAppliance(
    applianceDir,
    [
      { path: join(directory, 'disk'), serial: 'disk0' },
      { path: image, serial: 'image', readOnly: true },
    ],
    {
      plan: {
        version: 1,
        installId: '11111111-1111-1111-1111-111111111111',
        instance: 'test.example.com',
        disks: [{ serial: 'disk0', sizeBytes: DISK_BYTES }],
        image: { serial: 'image', fileSizeBytes: statSync(image).size, grow: false },
        scripts: { script: 'create', path: 'untrusted/create', environment: {} },
        personalization: { format: 'tar.gz' },
        hooks: { points: ['install.pre', 'after-install'], hasDocuments: true },
      },
      definitionTar: definition(),
      osPackage: readFileSync(join(directory, 'package.tgz')),
      documents: { '/ganeti/latest/install/hooks.json': JSON.stringify([hooks]) },
    },
  );
}

test('reports that a script forges are rejected and counted', () => {
  const last = run.events.at(-1);
  assert.deepEqual(last?.type === 'result' && last.outcome, { status: 'success' }, run.console);
  assert.equal(run.exitStatus, 0);
  const word = new AgentWord();
  const believed = run.reports.flatMap((report) => word.take(report) ?? []);
  assert.equal(word.forged, 2);
  assert.equal(word.lost, 0);
  assert.deepEqual(believed.at(-1), last);
  assert.deepEqual(logOf(believed, 'after-install').at(-1), 'added');
});

test("a root script reaches neither the kernel nor the agent's memory, mounts and limits", () => {
  assert.deepEqual(logOf(run.events, 'os-scripts').at(-1), 'done');
  const printed = logOf(run.events, 'os-scripts').filter((line) => line !== 'done');
  assert.deepEqual(
    printed.filter((line) => !line.startsWith('mount: ')),
    [],
  );
  // The kernel ran the script's helper as root, without further rights.
  assert.match(run.console, /helper refused/);
  assert.doesNotMatch(run.console, /helper read/);
});

test('a process that a script leaves running writes no file to the instance, and its mount is unmounted and logged', () => {
  assert.match(
    logOf(run.events, 'mount').join('\n'),
    /^\/dev\/vd\w was still mounted on \/srv\/left: unmounted$/m,
  );
  shell('e2fsck -fn disk >/dev/null 2>&1');
  const listed = shell('debugfs -R "ls -p /" disk 2>/dev/null');
  assert.match(listed, /\/from-script\//);
  assert.doesNotMatch(listed, /\/later\//);
});

test('a program that exceeds the memory or process limit is killed, with the limit in the log', () => {
  const lines = logOf(run.events, 'install.pre').join('\n');
  assert.match(lines, /eats.*was killed: it exceeded the memory limit of \d+ MiB/);
  assert.match(lines, /forks.*was killed: it exceeded the limit of 512 processes/);
});
