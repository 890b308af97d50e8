import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { renderHelp } from '../../cluster-cli/create-command.ts';
import { isProgramName, programs } from '../../cluster-cli/programs.ts';

const main = join(import.meta.dirname, '../../cluster-cli/main.ts');

test('the help that is written down is what the program itself prints', async () => {
  const written = await renderHelp('gnt-instance', { version: '0.1.0', columns: 80 });
  for (const [words, option, file] of [
    [[], '--help', 'gnt-instance'],
    [[], '--help-all', 'gnt-instance.all'],
    [['add'], '--help', 'gnt-instance.add'],
    [['add'], '--help-all', 'gnt-instance.add.all'],
    [['snapshot'], '-h', 'gnt-instance.snapshot'],
  ] as const) {
    const { stdout } = await run(process.execPath, [main, ...words, option], {
      env: { ...process.env, GNT_PROGRAM: 'gnt-instance' },
    });
    assert.equal(written.get(file)?.trimEnd(), stdout.trimEnd());
  }
});

test('every command of every program has its help', async () => {
  for (const name of Object.keys(programs).filter(isProgramName)) {
    const written = await renderHelp(name, { version: '0.1.0', columns: 80 });
    assert.ok(written.size > 3, name);
    for (const [file, text] of written) {
      assert.ok(
        text.startsWith(`Usage: ${file.replace(/\.all$/, '').replace('.', ' ')}`),
        `${file}: ${text}`,
      );
      for (const line of text.split('\n')) assert.doesNotMatch(line, /undefined|\[object/);
    }
  }
});
