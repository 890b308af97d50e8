import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runProgram } from './support/run-program.ts';
import { sampleInstance } from './support/samples.ts';

/** What `run`, the tags and `audit` send and print; with a guest behind them: test/e2e/lifecycle-kills.long.test.ts. */

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => daemon.submitted.splice(0));

const gntInstance = (args: readonly string[], input = ''): ReturnType<typeof runProgram> =>
  runProgram('gnt-instance', args, { root: daemon.root, input });

test('run submits the script with its inputs, of which no value is an argument’s when it comes from a file', async () => {
  const inputs = ['--input', 'TAG=v=7', '--input', 'TOKEN=@-'];
  const { status, stderr } = await gntInstance(['run', ...inputs, 'web1', 'deploy'], 'hush-hush');
  assert.equal(status, 0, stderr);
  const [opcode] = daemon.submitted;
  assert.deepEqual(
    { ...opcode },
    {
      ...{ opcode: 'INSTANCE_RUN_SCRIPT', name: 'web1', script: 'deploy' },
      inputs: { TAG: 'v=7', TOKEN: 'hush-hush' },
    },
  );
  assert.doesNotMatch(stderr, /hush/);
});

test('an input without a name is refused before anything is sent, and not shown', async () => {
  const { status, stderr } = await gntInstance(['run', '--input', 'hush-hush', 'web1', 'deploy']);
  assert.equal(status, 2);
  assert.match(stderr, /^error\[USAGE\]: option --input: NAME=VALUE is expected$/m);
  assert.doesNotMatch(stderr, /hush/);
  assert.deepEqual(daemon.submitted, []);
});

test('tags are put to those that there are, or taken from them', async () => {
  await gntInstance(['add-tags', 'web1', 'rs_agent:type=right_link_lite', 'web']);
  await gntInstance(['remove-tags', 'web1', 'web']);
  assert.deepEqual(
    daemon.submitted.map((opcode) =>
      opcode.opcode === 'INSTANCE_SET_PARAMS' ? [opcode.addTags, opcode.removeTags] : opcode,
    ),
    [
      [['rs_agent:type=right_link_lite', 'web'], undefined],
      [undefined, ['web']],
    ],
  );
});

test('an audit is shown as it is, but for what would steer a terminal', async () => {
  daemon.instances.push(sampleInstance({ name: 'web1' }));
  daemon.installLog = '2026-11-23T00:00:00Z *RS> Completed: boot/01-base\n  \u001b[31mred\n';
  const { status, stdout } = await gntInstance(['audit', 'web1']);
  assert.equal(status, 0);
  assert.match(stdout, /^2026-11-23T00:00:00Z \*RS> Completed: boot\/01-base\n {2}red\n$/);
});
