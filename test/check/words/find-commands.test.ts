import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { type CommandNode, loadCommandTree } from './command-tree.ts';
import { findUnknownCommands } from './find-commands.ts';

let tree: ReadonlyMap<string, CommandNode>;
before(async () => {
  tree = await loadCommandTree();
});

function check(text: string): readonly string[] {
  return findUnknownCommands(new Map([['a.md', text]]), tree);
}

test('commands and options that exist are fine', () => {
  const text = [
    '`gnt-instance list -o name`, `gnt-os`, `--os-image`, `gnt-instance COMMAND --help`',
    '`gnt-instance add|reinstall --os-image X`, `gnt-metad --ganeti`, `gnt-noded(8)`',
    '| `gnt-instance add\\|modify --os-image` | `--optimize-for-size` |',
    '```console',
    '# gnt-instance add \\',
    '    --os-image x.raw web1 && gnt-instance ssh web1 -- ls --color',
    '# gnt-instance ssh web1 systemctl --failed',
    '# curl --silent x | gnt-instance send web1 -',
    '# systemctl status gnt-noded.service --no-pager',
    '```',
  ];
  assert.deepEqual(check(text.join('\n')), []);
});

test('an unknown command or option is found with its line', () => {
  assert.deepEqual(check('\n`gnt-instance lost web1`'), [
    "a.md:2: gnt-instance has no command 'lost'",
  ]);
  assert.deepEqual(check('```\n# gnt-instance add \\\n  --gone x web1\n```'), [
    'a.md:2: gnt-instance add has no option --gone',
  ]);
  assert.deepEqual(check('`gnt-noded --gone`'), ['a.md:1: gnt-noded has no option --gone']);
  assert.deepEqual(check('`--gone-option`'), ['a.md:1: no program has --gone-option']);
});

test('each command of a line is judged', () => {
  assert.deepEqual(check('`gnt-os list; gnt-os lost`'), ["a.md:1: gnt-os has no command 'lost'"]);
});

test('commands of another product are not judged where a page compares the two', () => {
  const text = '| `gnt-os lost` | `gnt-os gone` |\n```\nganeti# gnt-os lost\n# gnt-os list\n```\n';
  assert.deepEqual(findUnknownCommands(new Map([['docs/migrate-from/x.md', text]]), tree), [
    "docs/migrate-from/x.md:1: gnt-os has no command 'gone'",
  ]);
});
