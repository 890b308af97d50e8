import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';

const record = z.object({ pid: z.number() });
/** Stands for a running guest: it keeps the channel's namespace across daemons. */
const TAP = 'gnt.com.0';

test('a start that fails before machines are found again leaves the metad that it took over', async (t) => {
  const lab = await createLab('gnt-fs');
  t.after(() => lab.dispose());
  await lab.startNode();
  const pid = await metadPid(lab);
  await inChannel(lab, 'tuntap', 'add', TAP, 'mode', 'tap');
  const node = lab.node();
  const ended = once(node, 'exit');
  node.kill('SIGKILL');
  await ended;
  // Breaks the first step of a start, reading the outcomes of jobs.
  const { outcomesDir } = lab.paths;
  await rm(outcomesDir, { recursive: true, force: true });
  await writeFile(outcomesDir, '');
  await assert.rejects(lab.startNode(), /ENOTDIR/);
  assert.ok(existsSync(`/proc/${pid}/exe`), 'its guests have lost their secrets');
  await rm(outcomesDir);
  await lab.startNode();
  assert.equal(await metadPid(lab), pid);
  await inChannel(lab, 'link', 'delete', TAP);
  assert.equal(await lab.stopNode(), 0);
  assert.deepEqual(await lab.findLeftovers(), []);
});

async function metadPid({ paths }: Lab): Promise<number> {
  return record.parse(JSON.parse(await readFile(paths.metadRecordFile, 'utf8'))).pid;
}

async function inChannel({ paths }: Lab, ...words: readonly string[]): Promise<void> {
  await run('ip', ['-n', paths.networkNamespace, ...words]);
}
