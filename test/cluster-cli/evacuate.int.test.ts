import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, end, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runProgram } from './support/run-program.ts';
import { sampleInstance } from './support/samples.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.script = (job) => {
    const ended = { ...job, status: 'success' as const, endedAtMs: job.receivedAtMs };
    daemon.jobs.splice(daemon.jobs.indexOf(job), 1, ended);
    return [end(ended)];
  };
  daemon.instances.push(
    sampleInstance({ name: 'running' }),
    sampleInstance({ name: 'stopped', running: null, status: 'ADMIN_down' }),
    sampleInstance({ name: 'elsewhere', primaryNode: 'node2' }),
  );
});
beforeEach(() => void daemon.submitted.splice(0));
after(() => daemon.close());

const submitted = (): readonly string[] =>
  daemon.submitted.map((opcode) => `${opcode.opcode} ${'name' in opcode ? opcode.name : ''}`);

test('evacuate sends all of a node elsewhere: what runs migrates, what is stopped moves', async () => {
  const { status, stderr } = await runProgram('gnt-node', ['evacuate', '-f', 'node1'], {
    root: daemon.root,
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(submitted(), ['INSTANCE_MIGRATE running', 'INSTANCE_MOVE stopped']);
});

test('migrate sends what runs, and nothing else', async () => {
  const { status, stderr } = await runProgram('gnt-node', ['migrate', '-f', 'node1'], {
    root: daemon.root,
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(submitted(), ['INSTANCE_MIGRATE running']);
});
