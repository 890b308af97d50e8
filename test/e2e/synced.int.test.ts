import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { disposeLab } from './support/end-lab.ts';
import { addOs, infoOf, submit, succeed } from './support/ask-nodes.ts';

/**
 * Nothing is acknowledged that a power cut could undo. strace shows that each file and name of an
 * operation is on the disk before the store has the operation's end.
 */
let lab: Lab;

before(async () => {
  lab = await createLab('gnt-sy');
  await lab.startNode();
  await addOs(lab, 'writes', ['echo system | dd of="$DISK_0_PATH" conv=notrunc']);
  await succeed(lab, 'gnt-os', 'trust', 'writes');
});

after(() => disposeLab(lab));

const CALLS = 'openat,creat,mkdir,rename,link,write,pwrite64,ftruncate,fsync,fdatasync';

/** Returns the system calls of the daemon and its children during an operation, in their order. */
async function trace(opcode: object): Promise<readonly string[]> {
  const pid = lab.node().pid ?? 0;
  const output = join(lab.paths.root, 'trace');
  const args = ['-qq', '-f', '-y', '-s', '0', '-e', `trace=${CALLS}`, '-o', output];
  const strace = spawn('strace', [...args, '-p', String(pid)], { stdio: 'ignore' });
  const gone = once(strace, 'exit');
  while (/^TracerPid:\s+0$/m.test(await readFile(`/proc/${pid}/status`, 'utf8'))) await sleep(5);
  assert.equal((await submit(lab, opcode)).error, null);
  strace.kill('SIGTERM');
  await gone;
  return (await readFile(output, 'utf8')).split('\n');
}

/** Returns the index of a call's last occurrence; -1 without one. */
function lastOf(lines: readonly string[], call: RegExp, path: string): number {
  return lines.findLastIndex((line) => call.test(line) && line.includes(`<${path}>`));
}

function assertSynced(lines: readonly string[], paths: readonly string[]): void {
  const sync = /\b(fsync|fdatasync)\(/;
  const end = lastOf(lines, sync, `${lab.paths.storeFile}-wal`);
  assert.ok(end > 0, 'the end of the job was not synced');
  for (const path of paths) {
    assert.ok(existsSync(path), path);
    const synced = lastOf(lines, sync, path);
    const written = lastOf(lines, /\b(write|pwrite64|ftruncate)\(/, path);
    assert.ok(synced > written && synced < end, `${path}: written ${written}, synced ${synced}, told ${end}`); // prettier-ignore
    assert.ok(lastOf(lines, sync, dirname(path)) > 0, `the name of ${path} is not on the disk`);
  }
}

const NAME = 'web1.example.com';
const install = {
  opcode: 'INSTANCE_CREATE', name: NAME, osType: 'writes', nics: [], start: false,
  disks: [{ sizeBytes: 16 * 1024 * 1024 }],
}; // prettier-ignore

test('an installed disk is on the disk before it is called installed', async () => {
  const lines = await trace(install);
  const { uuid } = await infoOf(lab, NAME);
  assertSynced(lines, [join(lab.paths.disksDir, uuid, 'disk0.raw')]);
  assert.ok(lastOf(lines, /fsync\(/, lab.paths.disksDir) > 0, 'the folder of the disks');
});

test('an export is on the disk before it is called made', async () => {
  const lines = await trace({ opcode: 'BACKUP_EXPORT', name: NAME });
  const { exportDir } = lab.paths;
  const end = lastOf(lines, /fsync\(/, `${lab.paths.storeFile}-wal`);
  for (const file of ['config.ini', 'disk0.snap', ''])
    assert.ok(
      lines.some((line, at) => /fsync\(/.test(line) && at < end && line.includes(`${exportDir}/${NAME}~n${file && `/${file}`}>`)), // prettier-ignore
      file,
    );
  const renamed = lines.findLastIndex((line) => /rename\(.*~n"/.test(line));
  const named = lastOf(lines, /fsync\(/, exportDir);
  assert.ok(renamed > 0 && named > renamed && named < end, `${renamed} ${named} ${end}`);
});
