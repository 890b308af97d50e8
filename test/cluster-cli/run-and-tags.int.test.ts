import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import { sampleInstance } from './support/samples.ts';

/**
 * Requests and output of `run`, the tags and `audit`. test/e2e/lifecycle-kills.long.test.ts runs
 * them with a guest.
 */

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => {
  daemon.submitted.splice(0);
  daemon.instances.splice(0);
});

const gntInstance = (args: readonly string[], input = ''): ReturnType<typeof runInProcess> =>
  runInProcess('gnt-instance', args, { root: daemon.root, input });

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
  assert.match(stderr, /^error\[USAGE\]: option --input: expected NAME=VALUE$/m);
  assert.doesNotMatch(stderr, /hush/);
  assert.deepEqual(daemon.submitted, []);
});

test('an end of a script that is none ends the command with its code, status and next step', async (t) => {
  const before = daemon.script;
  t.after(() => (daemon.script = before));
  for (const [code, status] of [
    ['SCRIPT_STRANDED', 1],
    ['GUEST_AGENT_SILENT', 1],
    ['INPUT_MISSING', 2],
  ] as const) {
    const error = {
      ...{ code, message: 'that is why', hint: 'that is next', details: {}, logTail: [] },
      ...{ stage: null, phase: status === 1 ? ('execution' as const) : ('prerequisite' as const) },
    };
    daemon.script = (job) => [{ type: 'end', atMs: 3, job: { ...job, status: 'error', error } }];
    const result = await gntInstance(['run', 'web1', 'deploy']);
    assert.equal(result.status, status, result.stderr);
    assert.equal(result.stderr, `error[${code}]: that is why\nhint: that is next\n`);
  }
});

test('run prints the output of the script to stdout, each piece once, and nothing of it with --json', async (t) => {
  const before = daemon.script;
  t.after(() => (daemon.script = before));
  const piece = (number: number, text: string) =>
    ({ type: 'script-output', atMs: 2, number, text }) as const;
  // Equal lines of the same millisecond are different lines.
  daemon.script = (job) => [
    piece(1, 'same\n'),
    piece(2, 'same\n'),
    piece(3, '\u001b[31mred\u001b[0m'),
    { type: 'end', atMs: 3, job: { ...job, status: 'success' } },
  ];
  const { stdout, stderr } = await gntInstance(['run', 'web1', 'deploy']);
  assert.equal(stdout, 'same\nsame\nred');
  assert.doesNotMatch(stderr, /same|red/);
  const json = await gntInstance(['run', '--json', 'web1', 'deploy']);
  assert.equal((JSON.parse(json.stdout) as { status: string }).status, 'success');
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

test('list-tags tells the tags in their order, one a line or as JSON, and nothing where there are none', async () => {
  const tags = ['web', 'rs_agent:type=right_link_lite'];
  daemon.instances.push(
    sampleInstance({ name: 'web1', tags }),
    sampleInstance({ name: 'bare', tags: [] }),
  );
  const { status, stdout } = await gntInstance(['list-tags', 'web1']);
  assert.deepEqual([status, stdout], [0, 'rs_agent:type=right_link_lite\nweb\n']);
  const json = await gntInstance(['list-tags', '--json', 'web1']);
  assert.deepEqual(JSON.parse(json.stdout), ['rs_agent:type=right_link_lite', 'web']);
  assert.equal((await gntInstance(['list-tags', 'bare'])).stdout, '');
  const unknown = await gntInstance(['list-tags', 'web2']);
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /^error\[INSTANCE_NOT_FOUND\]: /);
});

test('an audit is told by lines as JSON, and followed until it is interrupted', async () => {
  daemon.instances.push(sampleInstance({ name: 'web1' }));
  daemon.installLog = 'one\ntwo\n';
  const { stdout } = await gntInstance(['audit', '--json', 'web1']);
  assert.deepEqual(JSON.parse(stdout), { instance: 'web1', lines: ['one', 'two'] });
  const followed = await runInProcess('gnt-instance', ['audit', '--follow', 'web1'], {
    root: daemon.root,
    onOutput: (text, interrupt) => {
      if (text === 'one\ntwo\n') interrupt();
    },
  });
  assert.deepEqual([followed.status, followed.stdout], [130, 'one\ntwo\n']);
  assert.equal((await gntInstance(['audit', '--follow', '--json', 'web1'])).status, 2);
});

test("options of Ganeti's scripts work, and are not in the short help", async () => {
  const last = () => ({ ...daemon.submitted.pop() });
  const instance = (...args: string[]) => runInProcess('gnt-instance', args, { root: daemon.root });
  for (const [verb, opcode] of [
    ['migrate', 'INSTANCE_MIGRATE'],
    ['failover', 'INSTANCE_FAILOVER'],
  ] as const) {
    const { status, stderr } = await instance(verb, '-f', '--target-node', 'node2', 'web1');
    assert.equal(status, 0, stderr);
    assert.partialDeepStrictEqual(last(), { opcode, name: 'web1', node: 'node2' });
    const twice = await instance(verb, '-f', '-n', 'node2', '--target-node', 'node3', 'web1');
    assert.match(twice.stderr, /error\[USAGE\]: --node and --target-node are the same option/);
  }
  assert.equal((await instance('move', '--force', '--priority', 'high', 'web1')).status, 0);
  assert.deepEqual(last(), { opcode: 'INSTANCE_MOVE', name: 'web1' });
  assert.equal((await instance('move', '--priority', 'best', 'web1')).status, 2);
  assert.match((await instance('shutdown', '--print-jobid', 'web1')).stdout, /^\d+\n$/);
  const submitted = await instance('shutdown', '--print-jobid', '--submit', 'web1');
  assert.match(submitted.stdout, /^(\d+)\nJobID: \1\n$/);
  daemon.submitted.splice(0);
  assert.equal((await instance('shutdown', '--print-jobid', '--json', 'web1')).status, 2);
  assert.deepEqual(daemon.submitted, []);
  const { stdout } = await instance('migrate', '--help');
  assert.doesNotMatch(stdout, /--print-jobid|--priority|--force|--target-node/);
});
