import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REDACTED } from '#shared/contract/redacted.ts';
import { hintAfterInterrupt, interruptedJob } from '../../../noded/jobs/fail-interrupted.ts';
import { sampleJob } from '../../lab/sample-job.ts';

test('after an interrupted creation the hint is no command that the new record refuses', () => {
  const again = 'Submit the operation again.';
  assert.equal(
    hintAfterInterrupt({ opcode: 'INSTANCE_CREATE', name: 'web1.example.com' }, again),
    'Run gnt-instance reinstall web1.example.com if the instance exists (gnt-instance info web1.example.com). Otherwise: Submit the operation again.',
  );
  assert.equal(hintAfterInterrupt({ opcode: 'INSTANCE_REINSTALL', name: 'web1' }, again), again);
});

test('the hint asks for secrets only if the record of the job withholds values', () => {
  const hintFor = (input: Readonly<Record<string, unknown>>) =>
    interruptedJob(sampleJob({ input }), 'the node restarted', 0).error?.hint;
  assert.equal(hintFor({ opcode: 'TEST_DELAY', durationS: 1 }), 'Submit the operation again.');
  assert.equal(
    hintFor({ opcode: 'INSTANCE_REINSTALL', osParametersSecret: { rootpw: REDACTED } }),
    'Submit the operation again, with its secrets.',
  );
});
