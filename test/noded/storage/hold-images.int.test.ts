import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { createExportStore } from '../../../noded/instances/backup/export-store.ts';
import { holdImages } from '../../../noded/storage/hold-images.ts';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { makeExportOf } from '../instances/backup/make-export.ts';
import { instanceRecord } from '../support/records.ts';

let dir = '';
let count = 0;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-hold-'));
});
after(() => rm(dir, { recursive: true, force: true }));

/**
 * Starts a real QEMU process, paused before its guest's first instruction, that no daemon manages.
 */
async function startStranger(t: TestContext, disk: string, access = 'read-only=off') {
  const child = spawn(
    'qemu-system-x86_64',
    [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-S', '-accel', 'tcg', '-m', '16'],
      ...['-blockdev', `driver=file,node-name=file0,filename=${disk},${access}`],
      ...['-blockdev', `driver=raw,node-name=disk0,file=file0,${access}`],
      ...['-device', 'virtio-blk-pci,drive=disk0', '-qmp', 'stdio'],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  t.after(kill);
  // QEMU answers once its whole machine is created.
  child.stdin.write('{"execute":"qmp_capabilities"}');
  for (let said = ''; !said.includes('"return"');)
    said += String(((await once(child.stdout, 'data')) as [Buffer])[0]);
  return { pid: child.pid ?? 0, kill };
}

async function makeDisks() {
  count += 1;
  const disks = createInstanceDisks(join(dir, `disks-${count}`));
  const instance = instanceRecord({ disks: [{ sizeBytes: 1_048_576 }, { sizeBytes: 1_048_576 }] });
  await disks.createEmpty(instance);
  const path = disks.pathOf(instance, 1);
  await writeFile(path, 'data of a guest', { flag: 'r+' });
  return { disks, instance, path };
}

test('a disk that a machine has which nobody knows of is neither emptied nor removed, and the refusal names both', async (t) => {
  const { disks, instance, path } = await makeDisks();
  const first = disks.pathOf(instance, 0);
  await writeFile(first, 'another disk', { flag: 'r+' });
  const { pid, kill } = await startStranger(t, path);
  const refusal = {
    code: 'DISK_IN_USE',
    message: new RegExp(`${path} is in use by process ${pid} \\(qemu-system`),
  };
  await assert.rejects(disks.checkUnused(instance), refusal);
  await assert.rejects(disks.createEmpty(instance), refusal);
  await assert.rejects(disks.remove(instance), refusal);
  assert.match(await readFile(path, 'latin1'), /^data of a guest/);
  assert.match(
    await readFile(first, 'latin1'),
    /^another disk/,
    'not the free one before it either',
  );
  await kill();
  await disks.createEmpty(instance);
  assert.match(await readFile(path, 'latin1'), /^\0/);
  await disks.remove(instance);
  assert.deepEqual(await readdir(dirname(dirname(path))), []);
});

test('a machine that only reads a disk has it too', async (t) => {
  const { disks, instance, path } = await makeDisks();
  await startStranger(t, path, 'read-only=on,auto-read-only=off');
  await assert.rejects(disks.remove(instance), { code: 'DISK_IN_USE' });
  assert.equal((await stat(path)).size, 1_048_576);
});

test('no machine gets a disk while it is held', async (t) => {
  const { disks, instance, path } = await makeDisks();
  {
    await using held = new AsyncDisposableStack();
    held.use(await holdImages(dirname(path)));
    const child = spawn('qemu-io', ['-f', 'raw', '-c', 'write 0 512', path], { stdio: 'pipe' });
    const [status] = (await once(child, 'exit')) as [number];
    assert.notEqual(status, 0);
    assert.match(await readFile(path, 'latin1'), /^data of a guest/);
    await assert.rejects(disks.remove(instance), { code: 'DISK_IN_USE' });
  }
  await startStranger(t, path);
});

test('an instance that never had a disk is in nobody’s way', async () => {
  const { disks } = await makeDisks();
  const other = instanceRecord({}, { uuid: 'f6a7c1f6-7f0f-4c1e-9df6-3a5a6fd1a001' });
  await disks.checkUnused(other);
  await disks.remove(other);
});

test('an export whose dump a machine writes to is not imported, one that is only read is', async (t) => {
  const exports = createExportStore(join(dir, 'exports'));
  const path = await makeExportOf(exports, 'web1', 'x'.repeat(512));
  const dump = join(path, 'disk0.snap');
  const reader = await startStranger(t, dump, 'read-only=on,auto-read-only=off');
  assert.equal((await exports.load('web1')).dumps.length, 1);
  await reader.kill();
  const { pid } = await startStranger(t, dump);
  await assert.rejects(exports.load('web1'), {
    code: 'DISK_IN_USE',
    message: new RegExp(`${dump} is in use by process ${pid} `),
  });
});
