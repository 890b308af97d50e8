import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobRecord } from '#shared/contract/job.ts';
import { failureOfApi, failureOfJob } from '../../../cluster-cli/failures/failure.ts';
import { sampleJob } from '../../lab/sample-job.ts';

for (const [what, status, code, exitStatus] of [
  ['a known code, whatever the status of HTTP', 500, 'INSTANCE_NOT_FOUND', 2],
  ['a known code of a failure', 400, 'INTERNAL', 1],
  ['an unknown code with the first status of a refusal', 400, 'OF_A_NEWER_DAEMON', 2],
  ['an unknown code with the last status of a refusal', 499, 'OF_A_NEWER_DAEMON', 2],
  ['an unknown code with a status of a failure', 500, 'OF_A_NEWER_DAEMON', 1],
  ['an unknown code with a status of neither', 302, 'OF_A_NEWER_DAEMON', 1],
] as const) {
  test(`${what}: exit status ${exitStatus}`, () => {
    const failure = failureOfApi(status, { code, message: 'm', hint: null, details: {} });
    assert.deepEqual([failure.code, failure.exitStatus], [code, exitStatus]);
  });
}

const error = {
  ...{ code: 'SCRIPT_FAILED', message: 'exit status 3', hint: 'See the log.', details: { a: 1 } },
  ...{ phase: 'execution', stage: 'os-scripts', logTail: ['last'] },
} as const;

test('a failure of a job names the job beside its own details', () => {
  const failure = failureOfJob({
    ...sampleJob(),
    id: 7,
    error: { ...error, logTail: ['last'] } as JobRecord['error'],
  });
  const { code, message, hint, details, stage, logTail } = failure;
  assert.deepEqual(
    { code, message, hint, details, stage, logTail },
    {
      ...{ code: 'SCRIPT_FAILED', message: 'exit status 3', hint: 'See the log.' },
      ...{ details: { a: 1, job: 7 }, stage: 'os-scripts', logTail: ['last'] },
    },
  );
});

for (const [what, changes, code, exitStatus] of [
  ['refused before a change', { error: { ...error, phase: 'prerequisite' } }, error.code, 2],
  ['failed later', { error }, error.code, 1],
  ['interrupted', { error: { ...error, code: 'INTERRUPTED' } }, 'INTERRUPTED', 130],
  ['canceled without an error', { status: 'canceled', error: null }, 'JOB_CANCELED', 1],
  ['failed without an error', { status: 'error', error: null }, 'INTERNAL', 1],
] as const) {
  test(`a job that was ${what} ends the command with status ${exitStatus}`, () => {
    const failure = failureOfJob({ ...sampleJob(), ...changes } as unknown as JobRecord);
    assert.deepEqual([failure.code, failure.exitStatus], [code, exitStatus]);
  });
}
