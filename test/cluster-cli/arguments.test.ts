import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { endOptionsAtCommand } from '../../cluster-cli/arguments.ts';

const root = new Command('gnt-instance').option('--debug');
root
  .command('ssh <name> [command...]')
  .option('-l, --login-name <user>')
  .option('-A, --forward-agent');
root.command('push <name> <paths...>');

test('options end where the command for the guest begins, and not before', () => {
  for (const [given, at] of [
    ['ssh web1 ls -l', 2],
    ['ssh -l root web1 ls -A', 4],
    ['ssh web1 -l root -A ls --debug', 5],
    ['ssh -Al root web1 ls -l', 4],
    ['ssh -lroot --login-name=root --debug web1 ls -- -l', 5],
    ['ssh --login-name root web1 ls', 4],
    ['ssh --forward-agent web1 ls -l', 3],
    ['ssh --debug web1 ls -l', 3],
    ['ssh web1 -- ls -l', -1],
    ['ssh web1', -1],
    ['ssh -l root', -1],
    ['push web1 -x', -1],
    ['list -l', -1],
  ] as const) {
    const words = given.split(' ');
    const wanted = at === -1 ? words : [...words.slice(0, at), '--', ...words.slice(at)];
    assert.deepEqual(endOptionsAtCommand(words, root), wanted, given);
  }
});
