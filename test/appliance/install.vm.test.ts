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
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstallEvent } from '#shared/contract/install-event.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { hookPoint } from '#shared/contract/primitives.ts';
import { bootAppliance } from './support/boot-appliance.ts';
import { buildTestAppliance } from './support/build-test-appliance.ts';

const DISK_BYTES = 128 * 1024 * 1024;
const SECOND_DISK_BYTES = 32 * 1024 * 1024;
const SECRET = 'correct-horse-battery';
let directory = '';
let applianceDir = '';

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-appliance-test-'));
  applianceDir = await buildTestAppliance(directory);
});
after(() => rmSync(directory, { recursive: true }));

function shell(command: string): string {
  return execFileSync('sh', ['-c', command], { cwd: directory, encoding: 'utf8' });
}

function definition(script: string): Buffer {
  rmSync(join(directory, 'os'), { recursive: true, force: true });
  mkdirSync(join(directory, 'os/untrusted'), { recursive: true });
  writeFileSync(join(directory, 'os/untrusted/create'), script, { mode: 0o755 });
  shell('tar -C os -cf os.tar .');
  return readFileSync(join(directory, 'os.tar'));
}

function plan(imageBytes: number): InstallPlan {
  return {
    version: 1,
    installId: '11111111-1111-1111-1111-111111111111',
    instance: 'test.example.com',
    disks: [
      { serial: 'disk0', sizeBytes: DISK_BYTES },
      { serial: 'disk1', sizeBytes: SECOND_DISK_BYTES },
    ],
    image: { serial: 'image', fileSizeBytes: imageBytes, grow: true },
    scripts: {
      script: 'create',
      path: 'untrusted/create',
      environment: {
        INSTANCE_NAME: 'test.example.com',
        DISK_0_PATH: '/dev/disk/by-id/virtio-disk0',
      },
    },
    personalization: { format: 'tar.gz' },
    hooks: { points: [...hookPoint.options], hasDocuments: true },
  };
}

/**
 * A step at each kind of stage: in the appliance, in the instance's root, beside it, and after it
 * was unmounted.
 */
const HOOKS: Readonly<Record<'cluster' | 'instance', string>> = {
  cluster: `
stages:
  before-install:
    - commands: ['echo "$INSTANCE_NAME $INSTANCE_REINSTALL $OSP_ROOT_PASSWORD"']
      layout:
        device: {path: /dev/disk/by-id/virtio-disk1, init_disk: true}
        add_partitions:
          - {pLabel: swap, size: 8, filesystem: swap}
          - {pLabel: data, fsLabel: DATA, size: 8, filesystem: ext4}
    - layout:
        device: {label: DATA}
        add_partitions: [{pLabel: data, size: 8}]
        expand_partition: {size: 0}
  install.post:
    - commands:
        - '! grep -q " $GNT_TARGET " /proc/mounts'
        - echo unmounted
`,
  instance: `
stages:
  after-install-chroot:
    - name: inside
      hostname: hooked
      files: [{path: /etc/out/leak, content: kept in}]
      commands:
        - test "$(readlink /proc/self/root)" = / && echo chrooted >/etc/chrooted
        - busybox setsid sleep 1000 >/dev/null 2>&1 &
    - name: breaks
      optional: true
      commands: [exit 3]
  after-install:
    - commands: [cp "$GNT_TARGET/etc/added" "$GNT_TARGET/etc/copied"]
`,
};

function hookDocuments(): HookDocument[] {
  return (['cluster', 'instance'] as const).map((source) => ({
    source,
    name: 'hooks.yaml',
    content: Buffer.from(HOOKS[source]).toString('base64'),
  }));
}

function resultOf(events: readonly InstallEvent[]): unknown {
  const last = events.at(-1);
  return last?.type === 'result' ? last.outcome : last;
}

test('one boot dumps and grows a partitioned qcow2, runs script and hooks, overlays the package and reports success', async (t) => {
  // A GPT disk of 48 MiB with an ext4 root, which the plan grows to 128.
  shell(`mkdir -p tree/etc tree/bin && echo ID=test >tree/etc/os-release && echo old >tree/etc/replaced
    cp /usr/bin/busybox tree/bin && for name in sh readlink; do ln -s busybox tree/bin/$name; done
    ln -s ../../../../../run tree/etc/out && mkdir tree/run
    truncate -s 48M image.raw && printf 'label: gpt\\nstart=2048, name=root\\n' | sfdisk -q image.raw
    mke2fs -q -t ext4 -d tree -E offset=1048576 image.raw 46M && qemu-img convert -O qcow2 image.raw image.qcow2
    mkdir -p package/etc && echo new >package/etc/replaced && echo added >package/etc/added && tar -C package -czf package.tgz .`);
  writeFileSync(join(directory, 'disk'), '');
  truncateSync(join(directory, 'disk'), DISK_BYTES);
  writeFileSync(join(directory, 'second'), '');
  truncateSync(join(directory, 'second'), SECOND_DISK_BYTES);
  const image = join(directory, 'image.qcow2');
  const run = await bootAppliance(
    applianceDir,
    [
      { path: join(directory, 'disk'), serial: 'disk0' },
      { path: image, serial: 'image', readOnly: true },
      { path: join(directory, 'second'), serial: 'disk1' },
    ],
    {
      plan: plan(statSync(image).size),
      osParameters: { 'root-password': [SECRET, 'secret'], size: ['small', 'public'] },
      definitionTar: definition(
        [
          '#!/bin/sh',
          'env | sort',
          'mkdir -p /mnt/new && mount "$DISK_0_PATH-part1" /mnt/new',
          'echo "from script" >/mnt/new/etc/script; umount /mnt/new',
          '',
        ].join('\n'),
      ),
      osPackage: readFileSync(join(directory, 'package.tgz')),
      documents: { '/ganeti/latest/install/hooks.json': JSON.stringify(hookDocuments()) },
      // A busy host. Its refusals must neither lose nor reorder events.
      eventStatus: (post) => (post === 2 || post === 3 ? 503 : undefined),
    },
  );
  assert.deepEqual(resultOf(run.events), { status: 'success' }, run.console);
  assert.equal(run.exitStatus, 0);
  const finished = run.events.flatMap((event) =>
    event.type === 'stage-finished' ? [event.stage] : [],
  );
  assert.deepEqual(finished, [
    'hooks',
    'wait-disks',
    'before-install',
    'image',
    'grow',
    'os-scripts',
    'mount',
    'after-install-chroot',
    'personalize',
    'after-install',
    'unmount',
    'install.post',
    'sync',
  ]);
  const lines = run.events.flatMap((event) =>
    event.type === 'log' && event.stream === 'stdout' ? [event.line] : [],
  );
  assert.deepEqual(lines, [
    'test.example.com 1 <redacted>',
    'DISK_0_PATH=/dev/disk/by-id/virtio-disk0',
    'INSTANCE_NAME=test.example.com',
    'OSP_ROOT_PASSWORD=<redacted>',
    'OSP_SIZE=small',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'PWD=/run/gnt/os',
    'unmounted',
  ]);
  assert.ok(!run.console.includes(SECRET), 'the secret is on the serial console');
  shell('dd if=disk of=part bs=1M skip=1 status=none && e2fsck -fn part >/dev/null 2>&1');
  const read = (path: string): string => shell(`debugfs -R 'cat ${path}' part 2>/dev/null`);
  assert.equal(read('/etc/replaced'), 'new\n');
  assert.equal(read('/etc/added'), 'added\n');
  assert.equal(read('/etc/script'), 'from script\n');
  assert.equal(read('/etc/hostname'), 'hooked\n');
  assert.equal(read('/etc/chrooted'), 'chrooted\n');
  assert.equal(read('/run/leak'), 'kept in');
  assert.equal(read('/etc/copied'), 'added\n');
  const blocks = /Block count:\s+(\d+)[\s\S]*Block size:\s+(\d+)/.exec(
    shell('dumpe2fs -h part 2>/dev/null'),
  );
  assert.ok(
    Number(blocks?.[1]) * Number(blocks?.[2]) > 120 * 1024 * 1024,
    'the file system did not grow',
  );
  assert.equal(shell('sgdisk -v disk | grep -c "No problems found"'), '1\n');
  assert.match(shell('sfdisk -d second'), /: start= +2048, size= +16384, .*name="swap"\n/);
  shell('dd if=second of=data bs=1M skip=9 status=none && e2fsck -fn data >/dev/null 2>&1');
  assert.match(
    shell('dumpe2fs -h data 2>/dev/null'),
    /volume name: +DATA\n[\s\S]*Block count: +23\d{3}\n/,
  );
  const started = run.events.find((event) => event.type === 'agent-started');
  assert.ok(started?.userSpaceAtMs);
  t.diagnostic(
    `first process ${started.userSpaceAtMs} ms, agent ${started.atMs} ms after the kernel's start; all in ${Math.round(run.wallMs)} ms`,
  );
});
