import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { buffer } from 'node:stream/consumers';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { disposeLab } from './support/end-lab.ts';

/** Failures while an appliance extracts a boot archive. */
const TIMEOUT_MS = 600_000;
let lab: Lab;
/** A small file system for extracted archives. */
let kept: string;

before(async () => {
  lab = await createLab('gnt-troubles');
  kept = await mkdtemp('/tmp/gnt-opened-');
  await run('mount', ['-t', 'tmpfs', '-o', 'size=40m,mode=700', 'gnt-test-opened', kept]);
  await mkdir(lab.paths.stateDir, { recursive: true });
  await symlink(kept, lab.paths.bootArchivesDir);
  await lab.startNode();
});
after(async () => {
  await disposeLab(lab);
  await run('umount', [kept]);
  await rmdir(kept);
});

/** Creates a BootEnv, and its archive with a kernel. @returns the archive's path */
async function createBootEnv(name: string, kernel: Buffer): Promise<string> {
  const archive = pack();
  archive.entry({ name: 'linux' }, kernel);
  archive.finalize();
  const path = join(lab.paths.root, `${name}.tar.gz`);
  await writeFile(path, gzipSync(await buffer(archive), { level: 1 }));
  const amd64 = { IsoFile: `${name}.tar.gz`, Kernel: 'linux' };
  const document = { Name: name, OS: { Name: 'x', SupportedArchitectures: { amd64 } } };
  await writeFile(join(lab.paths.root, `${name}.json`), JSON.stringify(document));
  const created = await lab.run('gnt-bootenv', ['create', join(lab.paths.root, `${name}.json`)]);
  assert.equal(created.status, 0, created.stderr);
  return path;
}

const upload = (name: string, path: string) =>
  lab.run('gnt-bootenv', ['uploadiso', name, path], { timeoutMs: TIMEOUT_MS });
const halves = async (): Promise<string[]> =>
  (await readdir(kept)).filter((file) => file.startsWith('new-'));

test('a disk that is full ends the job by its name, and nothing is left of the archive', async () => {
  const path = await createBootEnv('large', randomBytes(60 << 20));
  const full = await upload('large', path);
  assert.equal(full.status, 1);
  assert.match(full.stderr, /error\[DISK_FULL\]/);
  assert.deepEqual(await readdir(kept), []);
});

test('two at once open what is of one content once', async () => {
  const kernel = Buffer.alloc(3_000_000, 'kernel');
  const path = await createBootEnv('one', kernel);
  await createBootEnv('two', kernel);
  const both = await Promise.all([upload('one', path), upload('two', path)]);
  for (const { status, stderr } of both) assert.equal(status, 0, stderr);
  const again = both.filter(({ stderr }) => stderr.includes('is already open'));
  assert.equal(again.length, 1);
  assert.equal((await readdir(kept)).filter((file) => file.endsWith('.data')).length, 1);
});

test('of what a killed daemon was opening nothing is left, and it is opened anew', async () => {
  const path = await createBootEnv('killed', randomBytes(5 << 20));
  const uploading = upload('killed', path);
  while ((await halves()).length === 0 || !(await hasMachine())) await sleep(100);
  await killNode(lab);
  await lab.startNode();
  const { status, stderr } = await uploading;
  assert.notEqual(status, 0, stderr);
  assert.deepEqual(await halves(), []);
  assert.ok(!(await hasMachine()), 'its appliance has gone with it');
  const again = await upload('killed', path);
  assert.equal(again.status, 0, again.stderr);
});

async function hasMachine(): Promise<boolean> {
  return (await lab.processes()).some(({ command }) => command.includes('qemu'));
}
