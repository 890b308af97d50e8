import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { CommanderError, type Command } from 'commander';
import { loadPrograms } from '../../../../scripts/docs/pages/commands.ts';
import { compareWithGaneti } from '../../../../scripts/docs/pages/ganeti-commands.ts';

const programs = await loadPrograms();

/** Tells whether the parser of a command knows an option, with or without a usable value. */
function accepts(command: Command, name: string): boolean {
  command.exitOverride().configureOutput({ writeErr: () => undefined });
  try {
    return !command.parseOptions([name, 'value']).unknown.includes(name);
  } catch (error) {
    if (error instanceof CommanderError) return error.code !== 'commander.unknownOption';
    throw error;
  }
}

/** Reads the lists of options from the page: `add` of `gnt-instance`, and its options by label. */
async function readPage(): Promise<Map<string, ReadonlyMap<string, readonly string[]>>> {
  const text = await readFile('docs/reference/ganeti-commands.md', 'utf8');
  const found = new Map<string, ReadonlyMap<string, readonly string[]>>();
  for (const [, program = '', section = ''] of text.matchAll(/^## (gnt-\S+)\n\n(.*?)\n(?=\n)/gms))
    for (const entry of section.split(/\n(?=- )/)) {
      const [, name = ''] = /^- `([\w-]+)`/.exec(entry) ?? [];
      const labels = [...entry.replace(/\s+/g, ' ').matchAll(/(\w+) options: (.*?)\.(?= |$)/g)];
      const options = labels.map(([, label = '', list = '']) => [
        label,
        [...list.matchAll(/`(-[^ `]*)`/g)].map(([, option = '']) => option),
      ]);
      found.set(`${program} ${name}`, new Map(options as [string, string[]][]));
    }
  return found;
}

test('every option that the page calls the same is accepted, and every absent one is not', async () => {
  const page = await readPage();
  const compared = compareWithGaneti(programs);
  assert.equal(page.size, compared.length);
  let count = 0;
  for (const { program, name, command } of compared) {
    const lists = page.get(`${program} ${name}`) ?? assert.fail(`${program} ${name}`);
    if (command === null) assert.equal(lists.size, 0, `${program} ${name}`);
    else
      for (const [label, options] of lists)
        for (const option of options) {
          count += 1;
          const isKnown = accepts(command, option);
          assert.equal(isKnown, label !== 'Absent', `${program} ${name} ${option}: ${label}`);
        }
  }
  assert.ok(count > 600, `${count} options`);
});

test('a command that is neither here nor among the absent ones stops the generator', () => {
  const fewer = programs.map((program) =>
    program.name() === 'gnt-job'
      ? Object.assign(Object.create(program) as Command, {
          commands: program.commands.filter((each) => each.name() !== 'cancel'),
        })
      : program,
  );
  assert.throws(() => compareWithGaneti(fewer), /wrong about gnt-job cancel/);
});
