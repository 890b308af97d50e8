import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand, tryCommand } from '../../../../appliance/agent/process/command.ts';
import { HeldNamespace } from '../../../../appliance/agent/process/held-namespace.ts';

test('a tool of the agent has oom_score_adj 1000', async () => {
  const { stdout } = await tryCommand('sh', ['-c', 'read line; cat /proc/self/oom_score_adj'], {
    input: 'go\n',
  });
  assert.equal(stdout, '1000\n');
});

test('a killed tool is an error with its signal and the likely cause', async () => {
  for (const [signal, why] of [
    ['KILL', 'it needed more memory'],
    ['SEGV', 'it crashed'],
  ] as const)
    await assert.rejects(runCommand('sh', ['-c', `echo working >&2; kill -${signal} $$`]), {
      code: 'COMMAND_FAILED',
      message: new RegExp(`killed by SIG${signal}: ${why}`),
    });
});

test('a mount that cannot be attached is an error with its paths', async () => {
  await using namespace = await HeldNamespace.open({ script: ':', root: '/' });
  await assert.rejects(namespace.attach('/nowhere', '/here'), {
    code: 'COMMAND_FAILED',
    message: /^attach \/nowhere \/here: confine: \d+: No such file or directory$/,
  });
});
