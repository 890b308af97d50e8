import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommandFailed, run } from '#shared/process/run.ts';

const main = join(import.meta.dirname, '../../cluster-cli/main.ts');

test('control characters of a file do not reach the terminal in a warning', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'gnt-warnings-'));
  t.after(() => rm(root, { recursive: true }));
  const file = join(root, 'na\u001b[31mme');
  await writeFile(file, '\u001b]0;evil\u0007#foo\n');
  // It fails without a daemon.
  const error: unknown = await run(
    process.execPath,
    [main, 'add', '--os-image', '/i', '--user-data', file, 'web1'],
    { env: { GNT_PROGRAM: 'gnt-instance', GNT_ROOT: root } },
  ).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof CommandFailed);
  const { stderr } = error;
  assert.match(stderr, /^warning: --user-data .*\/name: cloud-init does not know .*'#foo'$/m);
  assert.ok(!stderr.includes('\u001b'), JSON.stringify(stderr));
});
