import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hypervisorKeys, nicKeys } from '#shared/contract/parameter-keys.ts';
import { createCommand } from '../../../cluster-cli/create-command.ts';
import { formatKeys } from '../../../cluster-cli/help/keys.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';
import { isHelpShown } from '../../../cluster-cli/usage.ts';

/** Returns the output of an option's help. No command runs. */
async function print(...words: readonly string[]): Promise<string> {
  let text = '';
  const program = await createCommand('gnt-instance', { only: null } as Context, {
    ...{ version: '0.1.0', columns: 80 },
    write: (piece) => void (text += piece),
  });
  await assert.rejects(program.parseAsync([...words], { from: 'user' }), isHelpShown);
  return text;
}

test('help as the value of a list option prints every key with its default', async () => {
  const nics = await print('launch', '--net', 'help');
  for (const key of Object.keys(nicKeys)) assert.match(nics, new RegExp(`^ {2}${key}=`, 'm'));
  assert.match(nics, /mode=bridged\|user [^]*Default: bridged\./);
  const parameters = await print('modify', '-H', 'help');
  for (const key of Object.keys(hypervisorKeys))
    assert.match(parameters, new RegExp(`^ {2}${key}=`, 'm'));
  for (const [command, option] of [
    ['add', '--disk'],
    ['add', '-B'],
    ['reinstall', '--install-parameters'],
    ['modify', '--autostart'],
    ['modify', '--net'],
  ] as const)
    assert.match(await print(command, option, 'help'), /^Keys of --/, `${command} ${option}`);
});

test('no line of the keys is wider than the terminal, and each tells when a change counts', () => {
  for (const columns of [60, 80]) {
    const lines = formatKeys('--net', { keys: nicKeys, syntax: 'N:key=value,…' }, columns);
    for (const line of lines) assert.ok(line.length <= columns, line);
    assert.match(lines.join(' '), /Changes take effect at once: name\./);
  }
});
