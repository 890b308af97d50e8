import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { bothFailures } from '../../../noded/jobs/both-failures.ts';
import { describeFailure } from '../../../noded/jobs/describe-failure.ts';
import { StageFailure } from '../../../noded/jobs/stage-failure.ts';

const job = { id: 7, phase: 'execution', mask: (text: string) => text } as const;
const second = {
  what: "'web1' did not start again",
  error: new AppError('HOST_PREREQUISITE', 'bridge br0 is gone'),
  hint: 'gnt-instance startup web1',
};

test("a job's error tells both failures, with the stage and the log of the first", () => {
  const first = new StageFailure('SCRIPT_FAILED', 'export ended with 3', {
    ...{ stage: 'os-scripts' as const, logTail: ['no space'], hint: 'see its log' },
  });
  const told = describeFailure(bothFailures(first, second), job);
  assert.equal(told.code, 'SCRIPT_FAILED');
  assert.equal(
    told.message,
    "export ended with 3; and 'web1' did not start again: bridge br0 is gone",
  );
  assert.equal(told.hint, 'see its log. gnt-instance startup web1');
  assert.equal(told.stage, 'os-scripts');
  assert.deepEqual(told.logTail, ['no space']);
  assert.deepEqual(told.details['alsoFailed'], {
    ...{ code: 'HOST_PREREQUISITE', message: 'bridge br0 is gone' },
  });
});

test('a bug beside a failure is told as one, and both are its cause', () => {
  const bug = new TypeError('x is undefined');
  const both = bothFailures(bug, second);
  assert.equal(both.code, 'INTERNAL');
  assert.ok(both.cause instanceof AggregateError);
  assert.deepEqual(both.cause.errors, [bug, second.error]);
});

test('neither message of two bugs is told: each may quote a secret', () => {
  const quoting = new TypeError("Received 'k3y-of-the-guest\\x00'");
  for (const [one, other] of [
    [quoting, second.error],
    [second.error, quoting],
  ])
    assert.doesNotMatch(
      JSON.stringify(describeFailure(bothFailures(one, { ...second, error: other }), job)),
      /k3y/,
    );
});
