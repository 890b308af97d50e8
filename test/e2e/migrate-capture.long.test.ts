import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MIB } from '#shared/units/bytes.ts';
import { holdsInMemory } from '../../scripts/demo/find-secret.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { captureLink, sendPlain } from '../lab/capture-link.ts';
import { makeTinyLinux, TINY_INIT } from '../lab/tiny-linux.ts';
import { infoOf, statusOf, submit } from './support/ask-nodes.ts';
import { type LinkedNodes, linkNodes } from './support/linked-nodes.ts';

/** Two nodes in network namespaces, and a real guest with one canary in memory and one on disk. */
const ONE = 'node1.example.com';
const TWO = 'node2.example.com';
const NAME = 'guest.example.com';
const DISK_BYTES = 32 * MIB;
/** Size of the canaries in memory. Zeros are not sent. */
const FILLED_BYTES = 32 * MIB;
const LIMIT_MS = 120_000;
const READY = 'filled';
/** The guest joins the halves, so that its kernel and initramfs do not contain the value. */
const HALVES = [randomBytes(8).toString('hex'), randomBytes(8).toString('hex')] as const;
const IN_MEMORY = HALVES.join('-');
const ON_DISK = `canary-${randomBytes(12).toString('hex')}`;
let nodes: LinkedNodes;
let hosts: LinkedNodes['hosts'];
let one: Lab;
let two: Lab;

/** Doubles a file in memory, and then writes a word to the last sector of the disk. */
const INIT = `${TINY_INIT}$b mkdir -p /filled && $b mount -t tmpfs -o size=80m filled /filled
printf '%s-%s ' ${HALVES[0]} ${HALVES[1]} > /filled/a
while [ $($b stat -c %s /filled/a) -lt ${FILLED_BYTES} ]; do
  $b cat /filled/a /filled/a > /filled/b && $b mv /filled/b /filled/a
done
echo ${READY} | $b dd of=/dev/vda bs=512 seek=${DISK_BYTES / 512 - 1} conv=notrunc,fsync 2>/dev/null
while :; do $b sleep 60; done
`;

before(async () => {
  nodes = await linkNodes();
  hosts = nodes.hosts;
  [one, two] = nodes.labs;
  const [left, right] = hosts;
  const built = await one.run('gnt-appliance', ['build']);
  assert.equal(built.status, 0, built.stderr);
  await nodes.start(
    ['--node', ONE, '--data-address', left.address],
    ['--node', TWO, '--data-address', right.address],
  );
});

after(async () => {
  await submit(one, { opcode: 'INSTANCE_REMOVE', name: NAME, shutdownTimeoutS: 0 });
  await nodes.end();
});

async function diskOf(lab: Lab): Promise<string> {
  return join(lab.paths.disksDir, (await infoOf(one, NAME)).uuid, 'disk0.raw');
}

async function startGuest(): Promise<void> {
  const { kernel, initrd } = await makeTinyLinux(one, 'filling.img', INIT);
  const made = await submit(one, {
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, node: ONE, install: false, start: false },
    ...{ nics: [{ mode: 'user' }], communication: true, osType: 'both' },
    ...{ disks: [{ sizeBytes: DISK_BYTES }], beparams: { memoryMiB: 256, vcpus: 1 } },
    hvparams: {
      accel: 'tcg',
      kernel_path: kernel,
      initrd_path: initrd,
      kernel_args: 'console=ttyS0 quiet',
    },
  });
  assert.equal(made.error, null, JSON.stringify(made.error));
  const path = await diskOf(one);
  const content = Buffer.alloc(DISK_BYTES / 2, ON_DISK);
  await using disk = await open(path, 'r+');
  await disk.write(content, 0, content.length, 0);
  assert.equal(await statusOf(one, { opcode: 'INSTANCE_STARTUP', name: NAME }), 'success');
  const deadlineMs = performance.now() + LIMIT_MS;
  while (!(await readFile(path)).subarray(-512).toString('latin1').startsWith(READY)) {
    assert.ok(performance.now() < deadlineMs, 'the guest does not fill its memory');
    await sleep(100);
  }
}

async function pidOfGuest(lab: Lab): Promise<number> {
  const { uuid } = await infoOf(one, NAME);
  const found = (await lab.processes()).find(
    ({ command }) => command.includes('qemu-system') && command.includes(uuid),
  );
  assert.ok(found !== undefined);
  return found.pid;
}

test('the wire carries neither memory nor disk of a guest that migrates', async (t) => {
  const [left, right] = hosts;
  const values = [IN_MEMORY, ON_DISK];
  for (const value of values) {
    const { found } = await captureLink(left, [value], () => sendPlain(left, right, value));
    assert.ok((found[0] ?? 0) > 10, 'a plain stream was not recognized');
  }
  await startGuest();
  assert.ok(await holdsInMemory(IN_MEMORY, await pidOfGuest(one)));
  const captured = await captureLink(left, values, async () => {
    const { stderr } = await one.run('gnt-instance', ['migrate', '-n', TWO, 'guest']);
    assert.match(stderr, /instance guest migrated/, stderr);
  });
  t.diagnostic(JSON.stringify(captured));
  assert.deepEqual(captured.found, [0, 0]);
  // Memory and disk did cross the wire, and the capture saw most of it.
  assert.ok(captured.bytes > FILLED_BYTES, JSON.stringify(captured));
  assert.ok(await holdsInMemory(IN_MEMORY, await pidOfGuest(two)));
  const disk = await readFile(await diskOf(two));
  assert.ok(disk.subarray(0, DISK_BYTES / 2).equals(Buffer.alloc(DISK_BYTES / 2, ON_DISK)));
});
