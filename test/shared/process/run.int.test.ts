import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';

test('gives what the command printed and feeds it its input', async () => {
  const { stdout } = await run('cat', [], { input: 'through' });
  assert.equal(stdout, 'through');
});

test('never gives arguments to a shell', async () => {
  const { stdout } = await run('printf', ['%s', '$(id); `id` | id']);
  assert.equal(stdout, '$(id); `id` | id');
});

test("passes on nothing of this process' environment but PATH", async () => {
  process.env['GNT_TEST_LEAK'] = 'leaked';
  const { stdout } = await run('env', [], { env: { OWN: '1' } });
  delete process.env['GNT_TEST_LEAK'];
  const names = stdout.split('\n').map((line) => line.split('=')[0]);
  assert.deepEqual(names.sort(), ['LC_ALL', 'OWN', 'PATH']);
});

test('a command that fails is named, with its status and the last line of what it said', async () => {
  await assert.rejects(run('sh', ['-c', 'echo first >&2; echo the reason >&2; exit 3']), {
    code: 'COMMAND_FAILED',
    message: /^sh -c: the reason$/,
    details: {
      command: 'sh',
      args: ['-c', 'echo first >&2; echo the reason >&2; exit 3'],
      exitStatus: 3,
      stderr: 'first\nthe reason',
    },
  });
});

test('a command that is not there fails as one, too', async () => {
  await assert.rejects(run('gnt-no-such-command', []), { code: 'COMMAND_FAILED' });
});

test('a command that takes too long is ended with what it started', async () => {
  const marker = `31${process.pid}`;
  await assert.rejects(run('sh', ['-c', `sleep ${marker} & sleep ${marker}`], { timeoutMs: 200 }), {
    code: 'COMMAND_TIMEOUT',
  });
  const { stdout } = await run('ps', ['-eo', 'args']);
  assert.ok(!stdout.includes(`sleep ${marker}`), 'its child is left');
});

test('cancelling ends the command with the reason of the signal', async () => {
  const controller = new AbortController();
  const reason = new Error('enough');
  const running = run('sleep', ['60'], { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await assert.rejects(running, (error) => error === reason);
});
