import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { addDefinitions } from './support/definitions.ts';
import { endLab } from './support/end-lab.ts';

/**
 * The scripts of an OS definition other than `create`: their place, their environment, and the
 * round trip of dumps.
 */
let lab: Lab;
let osDir: string;
const OLD = 'old.example.com';
const NEW = 'new.example.com';

before(async () => {
  lab = await createLab('gnt-backup');
  osDir = lab.paths.osSearchPath[0] ?? '';
  await addDefinitions(lab, 'keeper');
  await lab.startNode();
});

after(async () => {
  for (const name of [OLD, NEW])
    await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name]);
  await endLab(lab);
});

async function must(result: Promise<ProgramResult>): Promise<string> {
  const { status, stdout, stderr } = await result;
  assert.equal(status, 0, stderr);
  return stdout + stderr;
}

async function info(name: string): Promise<InstanceInfo> {
  return instanceInfo.parse(
    JSON.parse((await lab.run('gnt-instance', ['info', '--json', name])).stdout),
  );
}

async function readDisk(name: string, offset: number, length: number): Promise<string> {
  await using disk = await open(join(lab.paths.disksDir, (await info(name)).uuid, 'disk0.raw'));
  const { buffer } = await disk.read(Buffer.alloc(length), 0, length, offset);
  return buffer.toString('latin1').replaceAll('\0', '');
}

test('an untrusted verify refuses parameters in the appliance, before anything is written', async () => {
  const result = await lab.run('gnt-instance', [
    'add', '-o', 'keeper', '-O', 'colour=black', '-s', '8M', '--no-start', OLD,
  ]); // prettier-ignore
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /error\[SCRIPT_FAILED\]: .*untrusted\/verify exited with status 1/);
  assert.match(result.stderr, /black is no colour/);
  assert.equal((await info(OLD)).install?.stage, 'verify');
  assert.equal(await readDisk(OLD, 0, 4096), '');
  await must(lab.run('gnt-instance', ['remove', '--force', OLD]));
});

test('untrusted scripts export an instance, make a new one of it, and tell it its new name', async () => {
  await must(
    lab.run('gnt-instance', [
      'add', '-o', 'keeper', '-O', 'colour=blue', '--disk', '0:size=8M', '--disk', '1:size=4M',
      '-B', 'memory=256,vcpus=2', '--net', '0:mac=02:00:00:12:34:56,mode=user', '--tags', 'a,b', '--no-start', OLD,
    ]),
  ); // prettier-ignore
  await must(lab.run('gnt-backup', ['export', OLD]));
  const log = join(lab.paths.logDir, `script-${(await info(OLD)).uuid}.log`);
  assert.match(await readFile(log, 'utf8'), /^dumping disk 0 of 2\ndumping disk 1 of 2$/m);

  const dir = join(lab.paths.exportDir, OLD);
  assert.deepEqual((await readdir(dir)).sort(), ['config.ini', 'disk0.snap', 'disk1.snap']);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  const dump = await readFile(join(dir, 'disk0.snap'));
  assert.equal(dump.length, `dump of ${OLD}\n`.length + 1000);
  assert.equal((await stat(join(dir, 'disk1.snap'))).size, 0);
  assert.match(await must(lab.run('gnt-backup', ['list'])), /old\.example\.com +keeper/);

  await must(lab.run('gnt-backup', ['import', '--src-dir', OLD, '--no-start', NEW]));
  assert.match(
    await must(lab.run('gnt-instance', ['log', NEW])),
    /disk 0 takes 1024 bytes\n.*disk 1 takes 0 bytes/s,
  );
  assert.equal(await readDisk(NEW, 0, 4096), `made for ${OLD} in blue\n`);
  const imported = await info(NEW);
  assert.deepEqual(
    imported.disks.map(({ sizeBytes }) => sizeBytes / 1024 ** 2),
    [8, 4],
  );
  assert.deepEqual(imported.beparams, { memoryMiB: 256, vcpus: 2 });
  assert.deepEqual(imported.osParameters, { colour: 'blue' });
  assert.deepEqual(imported.tags, ['a', 'b']);
  assert.equal(imported.nics[0]?.mode, 'user');
  assert.notEqual(imported.nics[0]?.mac, '02:00:00:12:34:56');
  await must(lab.run('gnt-instance', ['remove', '--force', OLD]));

  await must(lab.run('gnt-instance', ['rename', NEW, OLD]));
  assert.equal(await readDisk(OLD, 4096, 4096), `from ${NEW} to ${OLD}\n`);
  await must(lab.run('gnt-instance', ['remove', '--force', OLD]));
  await must(lab.run('gnt-backup', ['remove', '--force', OLD]));
  assert.deepEqual(await readdir(lab.paths.exportDir), []);
});

test("a trusted definition's scripts do the same on the host, and a failure leaves the export before it", async () => {
  const dir = join(osDir, 'host');
  await mkdir(dir);
  await writeFile(join(dir, 'ganeti_api_version'), '20\n');
  await writeFile(join(dir, 'parameters.list'), 'key of it\n');
  // Not in the definition's folder, which would change the definition and lose its trust.
  const failing = join(lab.paths.root, 'fail');
  const scripts = {
    create: 'head -c 3000000 /dev/urandom | dd of="$DISK_0_PATH" conv=notrunc status=none',
    export: `test ! -e ${failing} || exit 7\ngzip -1 <"$EXPORT_DEVICE"`,
    import: 'gzip -dc | dd of="$IMPORT_DEVICE" conv=notrunc status=none',
    rename: 'echo renamed',
    verify: 'true',
  };
  for (const [name, body] of Object.entries(scripts))
    await writeFile(join(dir, name), `#!/bin/sh\nset -e\n${body}\n`, { mode: 0o755 });
  await must(lab.run('gnt-os', ['modify', '--trusted', 'yes', 'host']));
  await must(
    lab.run('gnt-instance', [
      'add', '-o', 'host', '--os-parameters-private', 'key=sesame', '-s', '4M', '--no-start', OLD,
    ]),
  ); // prettier-ignore
  await must(lab.run('gnt-backup', ['export', OLD]));
  const record = join(lab.paths.exportDir, OLD, 'config.ini');
  assert.match(await readFile(record, 'utf8'), /^\[os_private\]\nkey = sesame$/m);
  assert.equal((await stat(record)).mode & 0o777, 0o600);

  await must(lab.run('gnt-instance', ['startup', OLD]));
  await must(lab.run('gnt-backup', ['export', '--shutdown-timeout=0', OLD]));
  assert.equal((await info(OLD)).status, 'running');
  await must(lab.run('gnt-instance', ['shutdown', '--timeout=0', OLD]));

  await writeFile(failing, '');
  const failed = await lab.run('gnt-backup', ['export', OLD]);
  assert.equal(failed.status, 1, failed.stderr);
  assert.match(
    failed.stderr,
    /export script exited with status 7 .*\nhint: Its complete output is in /,
  );
  assert.deepEqual(await readdir(lab.paths.exportDir), [OLD]);

  const digest = async (name: string): Promise<string> =>
    createHash('sha256')
      .update(await readDisk(name, 0, 4 * 1024 ** 2))
      .digest('hex');
  const exported = await digest(OLD);
  await must(lab.run('gnt-instance', ['remove', '--force', OLD]));
  await must(lab.run('gnt-backup', ['import', '--no-start', OLD]));
  assert.equal(await digest(OLD), exported);

  await writeFile(record, '[export]\nversion = 0\nos = host\n[instance]\nname = ../../etc\n');
  const refused = await lab.run('gnt-backup', ['import', '--src-dir', OLD, NEW]);
  assert.equal(refused.status, 2, refused.stderr);
  assert.match(refused.stderr, /error\[EXPORT_INVALID\]/);
  const missing = await lab.run('gnt-backup', ['import', NEW]);
  assert.match(
    missing.stderr,
    /error\[EXPORT_NOT_FOUND\]: this node has no export 'new\.example\.com'/,
  );
});
