import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extrasOf } from '../../../cluster-cli/completion/command.ts';
import { createCommand, renderHelp } from '../../../cluster-cli/create-command.ts';
import { wrapText } from '../../../cluster-cli/help/layout.ts';
import { isProgramName, programs } from '../../../cluster-cli/programs.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';

const names = Object.keys(programs).filter(isProgramName);
const createTree = (name: (typeof names)[number]) =>
  createCommand(name, { program: name, only: null } as Context, {
    ...{ version: '0.1.0', columns: 80 },
    write: () => undefined,
  });

for (const columns of [60, 80, 200]) {
  test(`no line of any help is wider than ${columns} columns`, async () => {
    for (const name of names) {
      const written = await renderHelp(name, { version: '0.1.0', columns });
      for (const [file, text] of written)
        for (const line of text.split('\n'))
          assert.ok(line.length <= columns, `${file}: ${line.length} columns: ${line}`);
    }
  });
}

test('each option has a help text of at most 100 characters that begins with a capital', async () => {
  for (const name of names) {
    const program = await createTree(name);
    for (const command of program.commands) {
      for (const { flags, description, hidden } of command.options) {
        if (hidden) continue;
        const where = `${name} ${command.name()} ${flags}`;
        assert.ok(description.length <= 100, `${where}: ${description.length} characters`);
        assert.match(description, /^[A-Z][^]*[^.]$/, where);
      }
    }
  }
});

test('each command has a summary of at most 70 characters that begins with a capital', async () => {
  for (const name of names) {
    for (const command of (await createTree(name)).commands) {
      assert.match(command.summary(), /^[A-Z].{0,68}[^.]$/, `${name} ${command.name()}`);
      assert.ok(command.description().length <= 420, `${name} ${command.name()}: description`);
    }
  }
});

test('the options that --help shows first are options of the command', async () => {
  for (const name of names) {
    for (const command of (await createTree(name)).commands) {
      const known = command.options.map(({ long }) => long);
      for (const long of extrasOf(command).essentials ?? [])
        assert.ok(known.includes(long), `${name} ${command.name()}: ${long}`);
    }
  }
});

test('launch --help shows a dozen options, and --help-all all of them', async () => {
  const written = await renderHelp('gnt-instance', { version: '0.1.0', columns: 80 });
  const optionsOf = (text = ''): readonly string[] => text.match(/^ {2}(-\w, )?--[a-z-]+/gm) ?? [];
  const first = optionsOf(written.get('gnt-instance.launch'));
  const all = optionsOf(written.get('gnt-instance.launch.all'));
  assert.ok(first.length >= 10 && first.length <= 18, String(first.length));
  const launch = (await createTree('gnt-instance')).commands.find(
    (each) => each.name() === 'launch',
  );
  const visible = launch?.options.filter(({ hidden }) => !hidden) ?? [];
  // --help itself is hidden too.
  assert.equal(all.length, visible.length + 1);
  assert.match(written.get('gnt-instance.launch') ?? '', new RegExp(`Show all options, \\d+ more`));
});

test('an example that is longer than a line can be pasted', async () => {
  const columns = 60;
  const written = await renderHelp('gnt-instance', { version: '0.1.0', columns });
  for (const command of (await createTree('gnt-instance')).commands) {
    const text = written.get(`gnt-instance.${command.name()}`) ?? '';
    const joined = text.replaceAll(/ \\\n +/g, ' ');
    for (const example of extrasOf(command).examples)
      assert.ok(joined.split('\n').includes(`  ${example}`), example);
  }
});

test('text is broken at spaces, and a longer word has its own line', () => {
  assert.deepEqual(wrapText('one two three\nfour', 7), ['one two', 'three', 'four']);
  assert.deepEqual(wrapText('a verylongword b', 5), ['a', 'verylongword', 'b']);
});
