import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import { inStage } from '../../../noded/jobs/in-stage.ts';
import { describeFailure } from '../../../noded/jobs/describe-failure.ts';

const job = { id: 7, phase: 'execution', mask: (text: string) => text } as const;

test('a private value is in no part of what a job keeps of its failure', () => {
  const mask = createMask(['hunter2!']);
  const thrown = new AppError('COMMAND_FAILED', 'it said hunter2!', {
    details: { args: ['--password', 'hunter2!'], nested: { deep: [{ text: 'hunter2!' }] } },
    hint: 'try hunter2!',
  });
  const failure = inStage(thrown, 'os-scripts', [mask('last hunter2!')], mask);
  const kept = describeFailure(failure, job);
  assert.ok(!JSON.stringify(kept).includes('hunter2!'), JSON.stringify(kept));
  assert.deepEqual(kept.details, {
    args: ['--password', '<redacted>'],
    nested: { deep: [{ text: '<redacted>' }] },
  });
  assert.deepEqual([kept.stage, kept.logTail], ['os-scripts', ['last <redacted>']]);
});

test('the message of a bug is not told, whatever the mask knows', () => {
  const bug = Object.assign(new TypeError("Received 'k3y-of-the-guest\\x00'"), {
    code: 'ERR_INVALID_ARG_VALUE',
  });
  const kept = describeFailure(inStage(bug, 'os-scripts', []), job);
  assert.doesNotMatch(JSON.stringify(kept), /k3y/);
  assert.equal(kept.code, 'INTERNAL');
  assert.equal(kept.message, 'unexpected failure (TypeError ERR_INVALID_ARG_VALUE)');
  assert.match(kept.hint ?? '', /^journalctl .*"job":7,/);
});
