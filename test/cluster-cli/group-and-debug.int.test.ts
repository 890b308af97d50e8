import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import { sampleInstance } from './support/samples.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.cluster = { ...daemon.cluster, tags: ['b', 'a'] };
  daemon.instances.push(sampleInstance({ name: 'web1' }));
});
after(() => daemon.close());

const gnt = (program: string, ...args: readonly string[]) =>
  runInProcess(program, args, { root: daemon.root });

test('gnt-group lists the group with all nodes and instances, and no other group', async () => {
  const fields = ['-o', 'name,node_list,pinst_cnt,alloc_policy', '--separator=|'];
  const { stdout } = await gnt('gnt-group', 'list', '--no-headers', ...fields, 'default');
  assert.equal(stdout, `default|${daemon.cluster.nodes.join(',')}|1|preferred\n`);
  const other = await gnt('gnt-group', 'list', 'west');
  assert.equal(other.status, 2);
  assert.match(other.stderr, /node group 'west' does not exist\nhint: .*default/);
});

test('gnt-debug delay submits a delay in seconds, and refuses other words', async () => {
  const { status, stderr } = await gnt('gnt-debug', 'delay', '0.25');
  assert.equal(status, 0, stderr);
  assert.deepEqual({ ...daemon.submitted.pop() }, { opcode: 'TEST_DELAY', durationS: 0.25 });
  for (const words of ['-1', '1e3', '1 h', '86401'])
    assert.equal((await gnt('gnt-debug', 'delay', '--', words)).status, 2, words);
  const tooLong = await gnt('gnt-debug', 'delay', '86401');
  assert.match(tooLong.stderr, /^error\[USAGE\]: '86401' is more than one day$/m);
  assert.deepEqual(daemon.submitted, []);
});

test('gnt-cluster changes and lists the tags of the cluster', async () => {
  assert.equal((await gnt('gnt-cluster', 'list-tags')).stdout, 'a\nb\n');
  await gnt('gnt-cluster', 'add-tags', 'c', 'd');
  assert.deepEqual(
    { ...daemon.submitted.pop() },
    {
      ...{ opcode: 'CLUSTER_SET_PARAMS', addTags: ['c', 'd'] },
      ...{ exposeServices: {}, packageMirrors: {} },
    },
  );
  await gnt('gnt-cluster', 'remove-tags', 'a');
  const removed = daemon.submitted.pop();
  assert.ok(removed?.opcode === 'CLUSTER_SET_PARAMS');
  assert.deepEqual(removed.removeTags, ['a']);
});
