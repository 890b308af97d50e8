import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { cp, open, readdir, readFile, rename, stat, symlink, truncate, writeFile } from 'node:fs/promises'; // prettier-ignore
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { endLab } from './support/end-lab.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { addOs, ask, infoOf, jobsOf, statusOf, submit, succeed } from './support/ask-nodes.ts';

/** Exports of an instance without dump scripts: its disks, and its whole record. */
let lab: Lab;
const OLD = 'bare.example.com';
const NEW = 'new.example.com';
/** File names have at most 255 bytes. */
const LONG = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
const SIZE = 32 * MIB;

before(async () => {
  lab = await createLab('gnt-whole');
  await lab.startNode();
  await addOs(lab, 'plain', ['true']);
  await succeed(lab, 'gnt-os', 'trust', 'plain');
});
after(() => endLab(lab));

const done = async (opcode: object): Promise<void> =>
  assert.equal((await submit(lab, opcode)).error, null);
const diskOf = async (name: string, index = 0): Promise<string> =>
  join(lab.paths.disksDir, (await infoOf(lab, name)).uuid, `disk${index}.raw`);
const digest = async (path: string): Promise<string> =>
  createHash('sha256').update(await readFile(path)).digest('hex'); // prettier-ignore

async function addBare(name: string): Promise<void> {
  await done({
    opcode: 'INSTANCE_CREATE', name, osType: 'plain', start: false, tags: ['db'],
    osParametersPrivate: { 'api-key': 'sesame' }, hvparams: { firmware: 'uefi', kernel_args: 'quiet' },
    beparams: { memoryMiB: 256, vcpus: 2 }, metadata: { role: 'db' }, communication: true,
    disks: [{ sizeBytes: SIZE }, { sizeBytes: 8 * MIB, name: 'data' }],
    nics: [{ mac: '02:00:00:12:34:56', mode: 'user' }],
  }); // prettier-ignore
  await done({ opcode: 'INSTANCE_SET_PARAMS', name, osType: null });
  await using disk = await open(await diskOf(name), 'r+');
  for (const at of [0, 17 * MIB + 5, SIZE - 8]) await disk.write(randomBytes(8), 0, 8, at);
  await writeFile(await diskOf(name, 1), 'data', { flag: 'r+' });
  const { uuid, instanceId } = await infoOf(lab, name);
  const variables = join(lab.paths.disksDir, uuid, `efi-variables-${instanceId}.fd`);
  await writeFile(variables, 'Boot0003 own-loader', { mode: 0o600 });
}

test('disks, firmware variables and settings come back, with an identity of their own', async () => {
  await addBare(OLD);
  await succeed(lab, 'gnt-backup', 'export', OLD);
  const dir = join(lab.paths.exportDir, OLD);
  assert.deepEqual((await readdir(dir)).sort(), ['config.ini', 'disk0.raw.zst', 'disk1.raw.zst']);
  assert.match(await succeed(lab, 'gnt-backup', 'list', '--no-headers'), /^bare\.example\.com +- /);
  await succeed(lab, 'gnt-backup', 'import', '--src-dir', OLD, '--no-start', '--tags', 'x', NEW);
  const [old, made] = [await infoOf(lab, OLD), await infoOf(lab, NEW)];
  for (const index of [0, 1]) {
    const [from, to] = [await diskOf(OLD, index), await diskOf(NEW, index)];
    assert.equal(await digest(to), await digest(from));
    assert.ok((await stat(to)).blocks <= (await stat(from)).blocks, 'holes stay holes');
  }
  for (const key of ['uuid', 'instanceId', 'createdAtMs'] as const)
    assert.notEqual(made[key], old[key]);
  assert.notEqual(made.nics[0]?.mac, old.nics[0]?.mac);
  assert.equal(made.nics[0]?.mode, 'user');
  const { osType, beparams, hvparams, metadata, communication, installState, osParametersPrivate } =
    old;
  assert.deepEqual(
    { osType, beparams, hvparams, metadata, communication, installState, osParametersPrivate },
    {
      osType: made.osType,
      ...{ beparams: made.beparams, hvparams: made.hvparams, metadata: made.metadata },
      ...{ communication: made.communication, installState: made.installState },
      osParametersPrivate: made.osParametersPrivate,
    },
  );
  assert.deepEqual([made.tags, made.disks[1]?.name], [['x'], 'data']);
  const variables = join(await diskOf(NEW), '..', `efi-variables-${made.instanceId}.fd`);
  assert.equal(await readFile(variables, 'utf8'), 'Boot0003 own-loader');
  await done({ opcode: 'INSTANCE_REMOVE', name: OLD });
  await done({ opcode: 'INSTANCE_CREATE', name: OLD, importFrom: OLD, start: false });
  assert.equal((await infoOf(lab, OLD)).nics[0]?.mac, '02:00:00:12:34:56');
  await done({ opcode: 'INSTANCE_REMOVE', name: NEW });
});

test('settings that the disks were not made with are refused, and so is what is broken', async () => {
  const refused = (given: object): Promise<string> =>
    statusOf(lab, {
      opcode: 'INSTANCE_CREATE',
      name: NEW,
      importFrom: OLD,
      start: false,
      ...given,
    });
  for (const given of [{ osType: 'plain' }, { disks: [{ sizeBytes: MIB }] }, { sshKeys: ['k'] }])
    assert.equal(await refused(given), 'VALIDATION', JSON.stringify(given));
  const foreign = join(lab.paths.root, 'foreign');
  await cp(join(lab.paths.exportDir, OLD), foreign, { recursive: true });
  await truncate(join(foreign, 'disk0.raw.zst'), 20);
  const job = await submit(lab, { opcode: 'INSTANCE_CREATE', name: NEW, importFrom: foreign, start: false }); // prettier-ignore
  assert.equal(job.error?.code, 'EXPORT_INVALID');
  assert.match(job.error.message, /foreign\/disk0\.raw\.zst has an incomplete zstd stream/);
  assert.equal((await readdir(lab.paths.disksDir)).length, 1);
});

test('an export from elsewhere names no files of this host that its guest would read', async () => {
  const foreign = join(lab.paths.root, 'hostile');
  await cp(join(lab.paths.exportDir, OLD), foreign, { recursive: true });
  const config = join(foreign, 'config.ini');
  const text = await readFile(config, 'utf8');
  await writeFile(config, text.replace('"kernel_args"', '"kernel_path":"/etc/shadow","kernel_args"')); // prettier-ignore
  assert.match(await readFile(config, 'utf8'), /\/etc\/shadow/);
  await done({ opcode: 'INSTANCE_CREATE', name: NEW, importFrom: foreign, start: false });
  assert.equal((await infoOf(lab, NEW)).hvparams.kernel_path, undefined);
  await done({ opcode: 'INSTANCE_REMOVE', name: NEW });
});

test('an instance with the longest of names is exported', async () => {
  assert.equal(LONG.length, 253);
  await done({ opcode: 'INSTANCE_RENAME', name: OLD, newName: LONG });
  await done({ opcode: 'BACKUP_EXPORT', name: LONG });
  await done({ opcode: 'BACKUP_EXPORT', name: LONG });
  await done({ opcode: 'BACKUP_REMOVE', name: LONG });
  await done({ opcode: 'INSTANCE_RENAME', name: LONG, newName: OLD });
});

test('a disk that is a link is neither copied, nor grown, nor exported, and says why', async () => {
  const disk = await diskOf(OLD);
  await rename(disk, join(lab.paths.root, 'elsewhere.raw'));
  await symlink(join(lab.paths.root, 'elsewhere.raw'), disk);
  for (const opcode of [
    { opcode: 'INSTANCE_COPY', newName: NEW },
    { opcode: 'INSTANCE_GROW_DISK', disk: 0, amountBytes: MIB },
    { opcode: 'BACKUP_EXPORT' },
  ]) {
    const body = { name: OLD, ...opcode };
    const answer = await askSocket(lab.paths.nodedSocket, '/v1/jobs', { method: 'POST', body });
    const error =
      answer.status === 202
        ? (await submitted(answer.body)).error
        : z.object({ code: z.string(), message: z.string() }).parse(JSON.parse(answer.body));
    assert.equal(error?.code, 'NOT_SUPPORTED', answer.body);
    assert.match(error.message, /disk 0 of 'bare\.example\.com' is a symbolic link at /);
  }
  await rename(join(lab.paths.root, 'elsewhere.raw'), disk);
});

async function submitted(body: string) {
  const { id } = z.object({ id: z.number() }).parse(JSON.parse(body));
  for (;;) {
    const job = (await jobsOf(lab)).find((one) => one.id === id);
    if (job?.endedAtMs != null) return job;
    await sleep(50);
  }
}

/** Kills the daemon as soon as a file appears. */
async function killAmid(opcode: object, dir: () => Promise<string | undefined>): Promise<void> {
  const body = opcode;
  const answer = await askSocket(lab.paths.nodedSocket, '/v1/jobs', { method: 'POST', body });
  assert.equal(answer.status, 202, answer.body);
  for (let found = false; !found;) {
    const path = await dir();
    const names = path === undefined ? [] : await readdir(path).catch(() => []);
    for (const name of names)
      found ||= ((await stat(join(path ?? '', name)).catch(() => null))?.size ?? 0) > 0;
    if (!found) await sleep(5);
  }
  await killNode(lab);
  await lab.stopNode();
  await lab.startNode();
}

test('killed amid an export or an import, nothing of it is left, and it can be done again', async () => {
  await done({ opcode: 'INSTANCE_GROW_DISK', name: OLD, disk: 0, amountBytes: 2048 * MIB });
  await killAmid({ opcode: 'BACKUP_EXPORT', name: OLD }, async () => {
    const name = (await readdir(lab.paths.exportDir).catch(() => [])).find((one) => one.endsWith('~n')); // prettier-ignore
    return name === undefined ? undefined : join(lab.paths.exportDir, name);
  });
  // The previous export is intact.
  assert.deepEqual(await readdir(lab.paths.exportDir), [OLD]);
  await done({ opcode: 'BACKUP_EXPORT', name: OLD });
  await killAmid(
    { opcode: 'INSTANCE_CREATE', name: NEW, importFrom: OLD, start: false },
    async () => {
      const name = (await readdir(lab.paths.disksDir)).find((one) => one.startsWith('copying-'));
      return name === undefined ? undefined : join(lab.paths.disksDir, name);
    },
  );
  assert.equal((await readdir(lab.paths.disksDir)).length, 1);
  const names = z.array(z.object({ name: z.string() }));
  assert.deepEqual((await ask(lab, '/v1/instances', names)).map(({ name }) => name), [OLD]); // prettier-ignore
  await done({ opcode: 'INSTANCE_CREATE', name: NEW, importFrom: OLD, start: false });
  const blocks = [OLD, NEW].map(async (name) => (await stat(await diskOf(name))).blocks);
  const [old, made] = await Promise.all(blocks);
  assert.ok((made ?? NaN) <= (old ?? NaN));
});
