import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdImage } from '../../../noded/storage/hold-images.ts';
import { isAlive, readBootId, readParentIdentity } from '../../../noded/host/process-identity.ts';
import { createHypervisor, type Hypervisor } from '../../../noded/vmm/hypervisor.ts';
import { tinyHost, tinySpec, writeTinyDisk } from './tiny-guest.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-fenced-'));
  await writeTinyDisk(disk());
  await writeFile(join(dir, 'lease'), `${readBootId()} 9999999999 9999999999\n`);
});
afterEach(async () => {
  const left = readdirSync(join(dir, 'vm'));
  await rm(dir, { recursive: true, force: true });
  assert.deepEqual(left, []);
});

const disk = (): string => join(dir, 'disk');
const create = (): Hypervisor =>
  createHypervisor({ ...tinyHost(join(dir, 'vm')), leaseFile: join(dir, 'lease') });

async function startFenced() {
  const machine = await create().start(tinySpec(disk(), { isFenced: true }));
  assert.match(readFileSync(`/proc/${machine.pid}/comm`, 'latin1'), /^qemu-system/);
  const fence = readParentIdentity(machine.pid);
  assert.match(readFileSync(`/proc/${fence?.pid}/cmdline`, 'latin1'), /gnt-fence/);
  assert.ok(fence);
  return { machine, fence };
}

test('a QEMU process with shared disks ends when its fence is killed', async () => {
  const { machine, fence } = await startFenced();
  process.kill(fence.pid, 'SIGKILL');
  assert.equal((await machine.exited).reason, 'crashed');
  assert.equal(machine.isRunning(), false);
});

test('the disks of an adopted QEMU process are free after it is killed', async () => {
  const { machine, fence } = await startFenced();
  await assert.rejects(holdImage(disk()), { code: 'DISK_IN_USE' });
  const [adopted] = await create().adopt();
  assert.equal(adopted?.machine.pid, machine.pid);
  // The process that pauses it is late, as on a busy host.
  process.kill(fence.pid, 'SIGSTOP');
  const ended = adopted.machine.kill().then(() => isAlive(fence));
  while (adopted.machine.isRunning()) await sleep(10);
  await sleep(1500);
  process.kill(fence.pid, 'SIGCONT');
  assert.equal(await ended, false);
  await (await holdImage(disk()))?.close();
  await machine.exited;
});
