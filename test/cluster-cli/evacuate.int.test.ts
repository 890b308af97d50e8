import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, end, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import { sampleInstance } from './support/samples.ts';

let daemon: DaemonStandIn;
/** Effect of a job on its instance. */
let send: (name: string) => void;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.script = (job) => {
    const asked = daemon.submitted.at(-1);
    if (asked !== undefined && 'name' in asked) send(String(asked.name));
    const ended = { ...job, status: 'success' as const, endedAtMs: job.receivedAtMs };
    daemon.jobs.splice(daemon.jobs.indexOf(job), 1, ended);
    return [end(ended)];
  };
});
beforeEach(() => {
  daemon.submitted.splice(0);
  daemon.instances.splice(0);
  daemon.instances.push(
    sampleInstance({ name: 'running' }),
    sampleInstance({ name: 'stopped', running: null, status: 'ADMIN_down' }),
    sampleInstance({ name: 'elsewhere', primaryNode: 'node2' }),
  );
  send = (name) => {
    const at = daemon.instances.findIndex((one) => one.name === name);
    const sent = daemon.instances[at];
    if (sent !== undefined) daemon.instances.splice(at, 1, { ...sent, primaryNode: 'node2' });
  };
});
after(() => daemon.close());

const submitted = (): readonly string[] =>
  daemon.submitted.map((opcode) => `${opcode.opcode} ${'name' in opcode ? opcode.name : ''}`);

test('evacuate sends all of a node elsewhere: what runs migrates, what is stopped moves', async () => {
  const { status, stderr } = await runInProcess('gnt-node', ['evacuate', '-f', 'node1'], {
    root: daemon.root,
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(submitted(), ['INSTANCE_MIGRATE running', 'INSTANCE_MOVE stopped']);
});

test('migrate sends what runs, and nothing else', async () => {
  const { status, stderr } = await runInProcess('gnt-node', ['migrate', '-f', 'node1'], {
    root: daemon.root,
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(submitted(), ['INSTANCE_MIGRATE running']);
});

test('what came while a node was evacuated is told, and no node called empty that is not', async () => {
  const sendOne = send;
  send = (name) => {
    sendOne(name);
    if (name === 'running') daemon.instances.push(sampleInstance({ name: 'late' }));
  };
  const { status, stderr } = await runInProcess('gnt-node', ['evacuate', '-f', 'node1'], {
    root: daemon.root,
  });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /1 instance\(s\) remain on node1: late/);
  assert.match(stderr, /--drained yes node1/);
  assert.doesNotMatch(stderr, /evacuated/);
});
