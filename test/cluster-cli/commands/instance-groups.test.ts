import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgram } from '../../../cluster-cli/completion/command.ts';
import { instanceCommands } from '../../../cluster-cli/commands/instance/instance-program.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';

for (const { words, load } of instanceCommands) {
  test(`a group is loaded for all commands that it adds, and for no other: ${words[0]}`, async () => {
    const context = { only: null } as Context;
    const program = createProgram(context, 'gnt-instance', 'one group');
    (await load())(program, context);
    const made = program.commands.flatMap((command) => [command.name(), ...command.aliases()]);
    assert.deepEqual([...words].sort(), made.sort());
  });
}
