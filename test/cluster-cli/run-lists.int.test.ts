import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { RunLists } from '#shared/contract/lifecycle.ts';
import { readRunLists } from '../../cluster-cli/commands/instance/run-lists.ts';
import type { Context } from '../../cluster-cli/terminal/context.ts';
import { createValueSource } from '../../cluster-cli/values/value-source.ts';

const SCRIPT = `#!/bin/bash
# ---
# RightScript Name: Base
# Description: (put your description here)
# Inputs:
#   SERVERS:
#     Category: NTP
#     Input Type: single
#     Required: true
#     Advanced: false
#     Default: text:time.example.com
# Attachments:
# - motd
# ...
echo done
`;

/** Creates a folder with files, and returns a reader of its run lists. */
async function createFolder(t: TestContext, files: Readonly<Record<string, string>>) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-run-list-'));
  t.after(() => rm(dir, { recursive: true }));
  await mkdir(join(dir, 'attachments'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const warnings: string[] = [];
  // Reading files uses only these members of a context.
  const context = {
    values: createValueSource(),
    warn: (text: string) => void warnings.push(text),
  } as unknown as Context;
  const read = (name: string): RunLists | null | undefined =>
    readRunLists({ runList: join(dir, name) }, context);
  return { dir, context, warnings, read };
}

test('a ServerTemplate gives its scripts in order, with declared inputs and attachments', async (t) => {
  const { read, warnings } = await createFolder(t, {
    'base.sh': SCRIPT,
    'leave.sh': '#!/bin/sh\n',
    'attachments/motd': 'hello\n',
    'base.yml': `Name: base
RightScripts:
  Boot:
  - base.sh
  Decommission:
  - leave.sh
Inputs:
  SERVERS: text:a b
  SECRET: cred:DB_PASSWORD
MultiCloudImages:
- Name: x
`,
  });
  const lists = read('base.yml');
  assert.deepEqual(
    lists?.boot.map(({ name, inputs }) => ({ name, inputs })),
    [
      {
        name: 'base.sh',
        inputs: [
          { name: 'SERVERS', required: true, default: { from: 'text', text: 'time.example.com' } },
        ],
      },
    ],
  );
  assert.equal(lists.decommission[0]?.inputs, null);
  assert.deepEqual(lists.attachments, [{ name: 'motd', content: 'aGVsbG8K' }]);
  assert.deepEqual(lists.inputs, {
    SERVERS: { from: 'text', text: 'a b' },
    SECRET: { from: 'cred', name: 'DB_PASSWORD' },
  });
  assert.match(warnings.join(), /MultiCloudImages is ignored/);
});

const refusals: readonly (readonly [string, Readonly<Record<string, string>>, string, RegExp])[] = [
  [
    'an unknown field',
    { 'x.yml': 'Name: x\nRightScripts: {}\nServers: 3\n' },
    'RUN_LIST_INVALID',
    /x\.yml: line 3/,
  ],
  [
    'a script without an interpreter',
    { 'x.yml': 'RightScripts: {Boot: [a]}\n', a: 'echo\n' },
    'RUN_LIST_INVALID',
    /a: line 1/,
  ],
  [
    'an unknown field of a script',
    { 'x.yml': 'RightScripts: {Boot: [a]}\n', a: '#!/bin/sh\n# ---\n# Hidden: 1\n# ...\n' },
    'RUN_LIST_INVALID',
    /a: line 3/,
  ],
  [
    'a script that is missing',
    { 'x.yml': 'RightScripts: {Boot: [none.sh]}\n' },
    'RUN_LIST_INVALID',
    /none\.sh/,
  ],
  [
    'an input that is a key',
    { 'x.yml': 'RightScripts: {}\nInputs:\n  A: key:hush\n' },
    'INPUT_MISSING',
    /line 3: input A: 'key:'/,
  ],
  [
    'an attachment elsewhere',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n# ---\n# Attachments: [../shadow]\n# ...\n',
      shadow: 'hush',
    },
    'RUN_LIST_INVALID',
    /a: '\.\.\/shadow' is not a valid name/,
  ],
  [
    'a default without a prefix behind other lines',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n#\n# ---\n# Inputs:\n#   A:\n#     Default: text:b\n#   B:\n#     Required: true\n#     Default: hush\n# ...\n',
    },
    'INPUT_MISSING',
    /a: line 9: input B: /,
  ],
  [
    'a header that is not YAML',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n#\n# ---\n# Inputs:\n#   A: [hush\n# ...\n',
    },
    'RUN_LIST_INVALID',
    /a: line [56]: not valid YAML/,
  ],
  [
    'a wrong value of the second of two equal keys',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n# ---\n# Inputs:\n#   A:\n#     Required: true\n#   B:\n#     Required: hush\n# ...\n',
    },
    'RUN_LIST_INVALID',
    /a: line 7: Inputs\.B\.Required: /,
  ],
  [
    'a header of a file with CR LF',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n# ---\r\n# Hidden: 1\r\n# ...\r\n',
    },
    'RUN_LIST_INVALID',
    /a: line 3: Unrecognized key/,
  ],
  [
    'a header that does not end',
    {
      'x.yml': 'RightScripts: {Boot: [a]}\n',
      a: '#!/bin/sh\n# ---\n# Inputs:\n#   A: {Required: true}\n\n# ...\n',
    },
    'RUN_LIST_INVALID',
    /a: line 2: the header does not end/,
  ],
  [
    'a script with CR LF',
    { 'x.yml': 'RightScripts: {Boot: [a]}\n', a: '#!/bin/sh\r\necho\r\n' },
    'RUN_LIST_INVALID',
    /\/a: lines end with CR LF: .*sed -i/,
  ],
  [
    'a published RightScript',
    {
      'x.yml': 'RightScripts:\n  Boot:\n  - a\n  - Name: Install NTP\n    Revision: 5\n',
      a: '#!/bin/sh\n',
    },
    'RUN_LIST_INVALID',
    /x\.yml: line 4: the published RightScript 'Install NTP' cannot be downloaded/,
  ],
  [
    'a script larger than 1 MiB',
    { 'x.yml': 'RightScripts: {Boot: [a]}\n', a: `#!/bin/sh\n${'#'.repeat(1024 * 1024)}\n` },
    'RUN_LIST_INVALID',
    /1 MiB|too/i,
  ],
];
for (const [what, files, code, message] of refusals) {
  test(`${what} is refused by its place, and no value is told`, async (t) => {
    const { read } = await createFolder(t, files);
    assert.throws(
      () => read('x.yml'),
      (error: Error & { code?: string }) =>
        error.code === code && message.test(error.message) && !error.message.includes('hush'),
    );
  });
}

test('scripts of one base name keep their order and their inputs', async (t) => {
  const { dir, read } = await createFolder(t, {
    'x.yml': 'RightScripts: {Boot: [a/run, b/run]}\n',
  });
  for (const name of ['a', 'b']) {
    await mkdir(join(dir, name));
    await writeFile(
      join(dir, name, 'run'),
      `#!/bin/sh\n# ---\n# Inputs:\n#   OF_${name}: {}\n# ...\n`,
    );
  }
  assert.deepEqual(
    read('x.yml')?.boot.map(({ name, inputs }) => [name, inputs?.[0]?.name]),
    [
      ['run', 'OF_a'],
      ['run', 'OF_b'],
    ],
  );
});

test('possible values of an input are read in all their forms', async (t) => {
  const { read } = await createFolder(t, {
    'x.yml': 'RightScripts: {Boot: [a]}\n',
    a: '#!/bin/sh\n# ---\n# Inputs:\n#   A:\n#     Possible Values: ["text:b", "cred:c", blank]\n# ...\n',
  });
  assert.deepEqual(read('x.yml')?.boot[0]?.inputs?.[0]?.possible, [
    { from: 'text', text: 'b' },
    { from: 'cred', name: 'c' },
    { from: 'text', text: '' },
  ]);
});

test('an attachment that is a link is refused', async (t) => {
  const { dir, read } = await createFolder(t, {
    'x.yml': 'RightScripts: {Boot: [a]}\n',
    a: '#!/bin/sh\n# ---\n# Attachments: [motd]\n# ...\n',
    shadow: 'hush',
  });
  await symlink('../shadow', join(dir, 'attachments', 'motd'));
  assert.throws(() => read('x.yml'), {
    code: 'RUN_LIST_INVALID',
    message: /motd: .* must not be, or be below, a symbolic link/,
  });
});

test('default takes run lists away, and without an option nothing is changed', async (t) => {
  const { context } = await createFolder(t, {});
  assert.equal(readRunLists({ runList: 'default' }, context), null);
  assert.equal(readRunLists({ bootScript: ['default'] }, context), null);
  assert.equal(readRunLists({}, context), undefined);
});
