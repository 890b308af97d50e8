import assert from 'node:assert/strict';
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import {
  createExportStore,
  type ExportStore,
} from '../../../../noded/instances/backup/export-store.ts';
import { makeExportOf } from './make-export.ts';

const NAME = 'web1.example.com';
const directory = mkdtempSync(join(tmpdir(), 'gnt-exports-'));
let exports: ExportStore;

beforeEach(async () => {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  exports = createExportStore(directory);
});
after(() => rmSync(directory, { recursive: true }));

const makeExport = (dump: string): Promise<string> => makeExportOf(exports, NAME, dump);

/** Exports `content` in a child process in which strace injects a fault into a call. */
function exportHurt(content: string, call: string, effect: string): SpawnSyncReturns<Buffer> {
  const program = join(import.meta.dirname, 'make-export.ts');
  return spawnSync(
    'strace',
    [
      ...['-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`],
      ...['-e', `inject=${call}:${effect}`],
      ...[process.execPath, program, directory, NAME, content],
    ],
    // strace counts the calls of each thread.
    { env: { ...process.env, UV_THREADPOOL_SIZE: '1' } },
  );
}

/**
 * Kills the export at its N-th call of one kind.
 * @returns whether the export made that call
 */
const exportUntilKilled = (content: string, call: string, n: number): boolean =>
  exportHurt(content, call, `signal=KILL:when=${n}`).signal === 'SIGKILL';

/**
 * The first rename sets the earlier export aside, the second puts the new one in place, the third
 * restores the earlier one.
 */
for (const when of ['1', '2', '2+']) {
  test(`an export whose renames ${when} find the disk full leaves the earlier one`, async () => {
    await makeExport('earlier');
    const { status, stderr } = exportHurt('later', 'rename', `error=ENOSPC:when=${when}`);
    assert.notEqual(status, 0);
    assert.match(stderr.toString(), /ENOSPC/);
    const listed = (await exports.list()).map(({ name, problem }) => ({ name, problem }));
    assert.deepEqual(listed, [{ name: NAME, problem: null }]);
    await exports.check(NAME);
    const { dumps } = await exports.load(NAME);
    assert.equal(await readFile(dumps[0]?.path ?? '', 'utf8'), 'earlier');
    // A further failed export keeps the earlier one too.
    exportHurt('later', 'rename', 'error=ENOSPC:when=2+');
    assert.equal((await exports.list())[0]?.problem, null);
    await makeExport('latest');
    assert.deepEqual(await readdir(directory), [NAME]);
  });
}

test('killed at any rename, removal or sync: the export is the earlier one or the new one, whole', async () => {
  await makeExport('earlier');
  let kills = 0;
  for (const call of ['rename', 'unlink', 'rmdir', 'unlinkat', 'fsync']) {
    for (let n = 1; exportUntilKilled(`${call} ${n}`, call, n); n += 1) {
      kills += 1;
      exports = createExportStore(directory);
      await exports.sweep();
      assert.deepEqual(await readdir(directory), [NAME], `after the kill at ${call} ${n}`);
      const { dumps } = await exports.load(NAME);
      const dump = await readFile(dumps[0]?.path ?? '', 'utf8');
      assert.ok(['earlier', `${call} ${n}`].includes(dump), `'${dump}' after ${call} ${n}`);
      await makeExport('earlier');
    }
    // The last export was not killed.
    await makeExport('earlier');
  }
  assert.ok(kills >= 6, `only ${kills} kill points were reached`);
});
