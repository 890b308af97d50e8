import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsoleLogs } from '../../noded/host/console-log.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { infoOf, succeed } from './support/ask-nodes.ts';
import { makeTinyLinux, TINY_INIT, type TinyLinux } from '../lab/tiny-linux.ts';

/**
 * Disks and NICs that are added to and removed from a running Linux guest. The guest prints its
 * devices.
 */
const NAME = 'plugged.example.com';
const LIMIT_MS = 120_000;
const TAIL_BYTES = 65_536;
const INIT = `${TINY_INIT}exec >/dev/ttyS0 2>&1
last=
while :; do
  now=sees
  for disk in /sys/block/vd*; do
    serial=; read serial <$disk/serial; now="$now \${disk##*/}=$serial"
  done
  for card in /sys/class/net/*; do
    [ -e $card/device ] || continue
    read mac <$card/address
    now="$now $mac@$($b readlink -f $card/device | $b sed 's,/virtio[0-9]*$,,; s,.*/,,')"
  done
  [ "$now" = "$last" ] || echo "$now;"
  last=$now
  $b sleep 0.2
done
`;
const FIRST = '02:00:00:00:00:01@0000:00:02.0';
let lab: Lab;
let guest: TinyLinux;

before(async () => {
  lab = await createLab('gnt-hot');
  await succeed(lab, 'gnt-appliance', 'build');
  await lab.startNode();
  guest = await makeTinyLinux(lab, 'initrd.img', INIT);
  await writeFile(join(lab.paths.root, 'image.raw'), Buffer.alloc(65_536), { mode: 0o644 });
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  const status = await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.equal(status, 0);
  assert.deepEqual(leftovers, []);
});

const modify = (...words: string[]): ReturnType<Lab['run']> =>
  lab.run('gnt-instance', ['modify', '-f', NAME, ...words]);

/** Waits until the guest's last line is this one. */
async function sees(what: string): Promise<void> {
  const { running } = await infoOf(lab, NAME);
  const log = new ConsoleLogs().ofProcess(running?.pid ?? 0) ?? assert.fail('it does not run');
  const deadlineMs = performance.now() + LIMIT_MS;
  let last = '';
  while (last !== what) {
    last = [...log.readTail(TAIL_BYTES).matchAll(/sees ([^;]*);/g)].at(-1)?.[1] ?? '';
    assert.ok(performance.now() < deadlineMs, `the guest sees ${last}, not ${what}`);
    await sleep(100);
  }
  log.close();
}

test('a disk and a NIC come and go in a guest that runs, and stay where they were put', async () => {
  const { root } = lab.paths;
  const boot = `kernel_path=${guest.kernel},initrd_path=${guest.initrd}`;
  await succeed(
    lab, 'gnt-instance', 'add', '--no-install', '-s', '8M', '--os-image', join(root, 'image.raw'),
    '-B', 'memory=256M', '-H', `accel=tcg,kernel_args=console=ttyS0,${boot}`,
    '--net', '0:mode=user,mac=02:00:00:00:00:01', NAME,
  ); // prettier-ignore
  await succeed(lab, 'gnt-instance', 'startup', NAME);
  await sees(`vda=disk0 ${FIRST}`);

  const added = await modify('--disk', 'add:size=4M', '--net', 'add:mode=user,mac=02:00:00:00:00:02'); // prettier-ignore
  assert.equal(added.status, 0, added.stderr);
  assert.match(added.stderr, /disk 1 is attached to the running instance/);
  assert.match(added.stderr, /NIC 1 is attached to the running instance/);
  const second = '02:00:00:00:00:02@0000:01:00.0';
  await sees(`vda=disk0 vdb=disk1 ${FIRST} ${second}`);
  assert.equal((await infoOf(lab, NAME)).partsOfRun, null);
  await succeed(lab, 'gnt-instance', 'grow-disk', NAME, '1', '4M');

  // The next QEMU process has the same slots, and later changes work in it.
  await succeed(lab, 'gnt-instance', 'shutdown', '--timeout=0', NAME);
  await succeed(lab, 'gnt-instance', 'startup', NAME);
  await sees(`vda=disk0 vdb=disk1 ${FIRST} ${second}`);
  const refused = await modify('--disk', '0:remove');
  assert.equal(refused.status, 2, refused.stderr);
  const { uuid } = await infoOf(lab, NAME);
  const removed = await modify('--disk', '1:remove');
  assert.equal(removed.status, 0, removed.stderr);
  await sees(`vda=disk0 ${FIRST} ${second}`);
  assert.equal(existsSync(join(lab.paths.disksDir, uuid, 'disk1.raw')), false);
  const out = await modify('--net', '1:remove');
  assert.match(out.stderr, /the NIC 02:00:00:00:00:02 is detached from the instance/);
  await sees(`vda=disk0 ${FIRST}`);
  assert.equal((await infoOf(lab, NAME)).partsOfRun, null);

  // A NIC from the start of the QEMU process is not hot-pluggable.
  const slot = await modify('--net', '0:remove');
  assert.match(slot.stderr, /changes of NICs take effect at the next start/);
  assert.equal((await infoOf(lab, NAME)).partsOfRun?.nics.length, 1);
});

test('killed while parts come and go, the daemon has on record what the machine has', async () => {
  for (const [words, delayMs] of [
    [['--disk', 'add:size=4M'], 30],
    [['--disk', 'add:size=4M'], 300],
    [['--disk', '-1:remove'], 100],
    [['--disk', '-1:remove'], 600],
  ] as const) {
    const before = await infoOf(lab, NAME);
    const changing = modify(...words);
    while (
      (await infoOf(lab, NAME).catch(() => before)).serialNo === before.serialNo &&
      delayMs > 50
    )
      if (await Promise.race([changing.then(() => true), sleep(10).then(() => false)])) break;
    await sleep(delayMs % 50);
    await killNode(lab);
    await lab.stopNode();
    await lab.startNode();
    await changing;
    const { disks, partsOfRun } = await infoOf(lab, NAME);
    const run = (partsOfRun?.disks ?? disks).map(
      ({ uuid }, at) => `vd${'abcde'[at]}=disk${disks.findIndex((disk) => disk.uuid === uuid)}`,
    );
    await sees([...run, FIRST].join(' '));
  }
});
