import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import {
  auditLogPath,
  createAuditLog,
  formatOutput,
  removeAuditLog,
} from '../../../../noded/instances/run-lists/audit-log.ts';

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-audit-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}
const textOf = (folder: string): Promise<string> => readFile(auditLogPath(folder, 'u'), 'utf8');

test('entries come in the order of calls, each sequence once, also after a restart', async (t) => {
  const folder = await folderOf(t);
  const log = createAuditLog(folder);
  await Promise.all([log.append('u', 'a\n', 1), log.append('u', 'b\n'), log.append('u', 'c\n', 3)]);
  await log.append('u', 'late\n', 2);
  await log.append('other', 'x\n', 1);
  const later = createAuditLog(folder);
  await later.append('u', 'again\n', 3);
  await later.append('u', 'd\n', 4);
  assert.equal(await textOf(folder), 'a\nb\nc\nd\n');
  assert.equal((await stat(auditLogPath(folder, 'u'))).mode & 0o777, 0o600);
  await writeFile(`${auditLogPath(folder, 'u')}.at`, 'damaged');
  await createAuditLog(folder).append('u', 'e\n', 1);
  assert.equal(await textOf(folder), 'a\nb\nc\nd\ne\n');
});

test('a long log is kept once beside the new one, and both are removed with their instance', async (t) => {
  const folder = await folderOf(t);
  const log = createAuditLog(folder);
  const full = 'x'.repeat(8 * MIB);
  await log.append('u', full);
  await log.append('u', 'y');
  await log.append('u', 'new\n');
  assert.equal(await textOf(folder), 'new\n');
  assert.equal(await readFile(`${auditLogPath(folder, 'u')}.1`, 'utf8'), `${full}y`);
  await log.append('u', 'z\n', 7);
  await removeAuditLog(folder, 'u');
  assert.deepEqual(await readdir(folder), []);
});

test('no line of output looks like a line of the node', () => {
  assert.equal(formatOutput('a\nb\n'), '  a\n  b\n');
  assert.equal(formatOutput('a\u001b[31m'), '  a?[31m\n');
});
