import assert from 'node:assert/strict';
import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { instanceInfo } from '#shared/contract/instance.ts';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { findViolations } from '../chaos/find-violations.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { addOs, ask, infoOf, submit, succeed } from './support/ask-nodes.ts';

/** A node whose whole root is a small file system, which the tests fill. */
let lab: Lab;
/** Outside the full file system. The script waits while it exists. */
const gate = (): string => `${lab.paths.root}.gate`;

/** Larger than the file system. */
const IMAGE_BYTES = 128 * 1024 * 1024;

before(async () => {
  lab = await createLab('gnt-fd');
  await run('mount', ['-t', 'tmpfs', '-o', 'size=112m,mode=755', 'gnt-test-fd', lab.paths.root]);
  await lab.startNode();
  await addOs(lab, 'gated', [
    'echo begun',
    `while [ -e ${gate()} ]; do sleep 0.05; done`,
    'head -c 65536 /dev/urandom | dd of="$DISK_0_PATH" conv=notrunc,fsync',
  ]);
  await succeed(lab, 'gnt-os', 'trust', 'gated');
});

after(async () => {
  await rm(gate(), { force: true });
  await lab.stopNode();
  await run('umount', ['-l', lab.paths.root]);
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

const create = (name: string): object => ({
  opcode: 'INSTANCE_CREATE', name, osType: 'gated', disks: [{ sizeBytes: 4 * 1024 * 1024 }],
  nics: [], start: false,
}); // prettier-ignore

function fill(): void {
  const file = openSync(join(lab.paths.root, 'filler'), 'a');
  try {
    for (const size of [65_536, 4096, 1])
      for (;;) if (writeSync(file, Buffer.alloc(size)) < size) break;
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    closeSync(file);
  }
}

const drain = (): Promise<void> => rm(join(lab.paths.root, 'filler'), { force: true });

/** Returns the public code of an operation's failure, or `success`. */
async function outcome(opcode: object): Promise<string> {
  const body = opcode;
  const answer = await askSocket(lab.paths.nodedSocket, '/v1/jobs', { method: 'POST', body });
  if (answer.status === 202) {
    const { id } = z.object({ id: z.number() }).parse(JSON.parse(answer.body));
    return endOf(id).then(({ error }) => error?.code ?? 'success');
  }
  return z.object({ code: z.string() }).parse(JSON.parse(answer.body)).code;
}

async function endOf(id: number): Promise<JobRecord> {
  for (;;) {
    const job = await ask(lab, `/v1/jobs/${id}`, jobRecord);
    if (job.endedAtMs !== null) return job;
    await sleep(50);
  }
}

test('long before the disk is full the jobs that take room, the doctor and the metrics warn', async () => {
  const add = async (name: string, sizeMiB: number): Promise<string> => {
    const disks = [{ sizeBytes: sizeMiB * 1024 * 1024 }];
    const { log } = await submit(lab, { ...create(name), disks });
    return log.flatMap(({ level, message }) => (level === 'warn' ? [message] : [])).join('\n');
  };
  assert.equal(await add('one.example.com', 4), '');
  const beyond = /disks of 2 instance\(s\) can grow to 204 MiB on a file system of 112 MiB/;
  assert.match(await add('two.example.com', 200), beyond);
  await writeFile(join(lab.paths.root, 'filler'), Buffer.alloc(30 * 1024 * 1024, 'x'));
  const setShare = (percent: string): Promise<unknown> =>
    succeed(lab, 'gnt-cluster', 'modify', '--low-space', percent);
  await setShare('80');
  const low = new RegExp(
    `only \\d+ MiB of 112 MiB free below ${lab.paths.stateDir} \\(store, disks`,
  );
  assert.match(await add('three.example.com', 4), low);
  const doctor = await lab.run('gnt-node', ['doctor']);
  assert.match(doctor.stdout, /disk: \d+ MiB of 112 MiB free below/);
  const { body } = await askSocket(lab.paths.nodedSocket, '/metrics');
  const metric = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(body)?.[1]);
  assert.equal(metric('gnt_file_system_size_bytes\\{place="disks"\\}'), 112 * 1024 * 1024);
  assert.ok(metric('gnt_file_system_free_bytes\\{place="store"\\}') < 0.8 * 112 * 1024 * 1024);
  assert.equal(metric('gnt_disks_promised_bytes'), 208 * 1024 * 1024);
  await setShare('0');
  assert.equal(await add('four.example.com', 4), '');
  await drain();
  for (const { name } of await ask(lab, '/v1/instances', instanceInfo.array()))
    assert.equal(await outcome({ opcode: 'INSTANCE_REMOVE', name }), 'success');
});

test('with a full disk operations are done, or fail by its name; removing works; with room all does', async () => {
  for (const name of ['one', 'two', 'three'])
    assert.equal((await submit(lab, create(`${name}.example.com`))).error, null);
  const backup = (opcode: string): object => ({ opcode, name: 'two.example.com' });
  assert.equal(await outcome(backup('BACKUP_EXPORT')), 'success');
  fill();
  const metadPid = await readFile(lab.paths.metadRecordFile, 'utf8');
  const name = 'one.example.com';
  const said: Record<string, string> = {};
  for (const [kind, opcode] of Object.entries({
    add: create('four.example.com'),
    modify: { opcode: 'INSTANCE_SET_PARAMS', name, tags: ['a'] },
    rename: { opcode: 'INSTANCE_RENAME', name, newName: 'uno.example.com' },
    'rename back': { opcode: 'INSTANCE_RENAME', name: 'uno.example.com', newName: name },
    export: { opcode: 'BACKUP_EXPORT', name },
    reinstall: { opcode: 'INSTANCE_REINSTALL', name, start: false },
    cluster: { opcode: 'CLUSTER_SET_PARAMS', hostScripts: true },
  }))
    said[kind] = await outcome(opcode);
  const named = ['success', 'DISK_FULL', 'DISK_SPACE'];
  assert.deepEqual(
    Object.entries(said).filter(([, code]) => !named.includes(code)),
    [],
    JSON.stringify(said),
  );
  assert.ok(Object.values(said).includes('DISK_FULL'), JSON.stringify(said));
  fill();
  // An export without room leaves the existing export, and removals work.
  assert.match(await outcome(backup('BACKUP_EXPORT')), /^DISK_(FULL|SPACE)$/);
  const exports = await ask(lab, '/v1/exports', z.array(z.object({ name: z.string(), problem: z.null() }))); // prettier-ignore
  assert.ok(exports.some(({ name: of }) => of === 'two.example.com'));
  fill();
  assert.equal(await outcome(backup('BACKUP_REMOVE')), 'success');
  fill();
  for (const gone of ['one', 'two'])
    assert.equal(
      await outcome({ opcode: 'INSTANCE_REMOVE', name: `${gone}.example.com` }),
      'success',
    );
  await drain();
  assert.deepEqual(await findViolations(lab.paths), []);
  assert.equal(await readFile(lab.paths.metadRecordFile, 'utf8'), metadPid);
  assert.equal(await outcome(create('one.example.com')), 'success');
  assert.equal(await outcome({ opcode: 'BACKUP_EXPORT', name: 'one.example.com' }), 'success');
});

test('a disk that fills while an installation runs fails it by name, and it can be repeated', async () => {
  await writeFile(gate(), '');
  let isOver = false;
  const adding = outcome(create('five.example.com')).finally(() => (isOver = true));
  while (!isOver) {
    const { body } = await askSocket(lab.paths.nodedSocket, '/v1/instances/five.example.com/log');
    if (body.includes('begun')) break;
    await sleep(50);
  }
  fill();
  await rm(gate());
  assert.equal(await adding, 'DISK_FULL');
  await drain();
  assert.equal((await infoOf(lab, 'five.example.com')).installState, 'failed');
  const again = { opcode: 'INSTANCE_REINSTALL', name: 'five.example.com', start: false };
  assert.equal(await outcome(again), 'success');
  assert.deepEqual(await findViolations(lab.paths), []);
  for (const { name } of await ask(lab, '/v1/instances', instanceInfo.array()))
    assert.equal(await outcome({ opcode: 'INSTANCE_REMOVE', name }), 'success');
});

test('an image that this host writes and that fills the disk fails by name, and leaves it empty', async () => {
  const image = `${lab.paths.root}.image`;
  await writeFile(image, Buffer.alloc(IMAGE_BYTES, 'x'));
  try {
    const disks = [{ sizeBytes: IMAGE_BYTES }];
    const adding = {
      ...create('six.example.com'),
      ...{ disks, safeInstall: false, osImage: image, osImageFormat: 'raw' },
    };
    // The store is on the same file system: if the disk stayed, the failure could not be recorded.
    assert.equal(await outcome(adding), 'DISK_FULL');
    const { installState, uuid } = await infoOf(lab, 'six.example.com');
    assert.equal(installState, 'failed');
    const disk = await stat(join(lab.paths.disksDir, uuid, 'disk0.raw'));
    assert.deepEqual([disk.size, disk.blocks], [IMAGE_BYTES, 0]);
  } finally {
    await rm(image);
  }
  const gone = { opcode: 'INSTANCE_REMOVE', name: 'six.example.com' };
  assert.equal(await outcome(gone), 'success');
});
