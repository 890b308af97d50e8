import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { errorCodes, isErrorCode } from '#shared/errors/codes.ts';

test('knows its own codes and nothing of what objects inherit', () => {
  for (const code of Object.keys(errorCodes)) assert.ok(isErrorCode(code));
  for (const code of ['toString', '__proto__', 'constructor', 'usage', ''])
    assert.ok(!isErrorCode(code), code);
});

test('an expected failure keeps its code, details, hint and cause', () => {
  const cause = new Error('deep');
  const error = new AppError('DISK_FULL', 'full', { details: { a: 1 }, hint: 'free', cause });
  const [isIt, isOther] = [isAppError(error, 'DISK_FULL'), isAppError(error, 'INTERNAL')];
  assert.deepEqual([isIt, isOther], [true, false]);
  assert.deepEqual(error.details, { a: 1 });
  assert.equal(error.hint, 'free');
  assert.equal(error.cause, cause);
});

test('an error without a cause has none, so that it is not printed as undefined', () => {
  assert.ok(!('cause' in new AppError('DISK_FULL', 'full')));
});

test('finds the message and the system code of whatever was thrown', () => {
  assert.equal(messageOf('text'), 'text');
  assert.equal(messageOf(new Error('text')), 'text');
  assert.equal(systemCodeOf(Object.assign(new Error('x'), { code: 'ENOENT' })), 'ENOENT');
  assert.equal(systemCodeOf(Object.assign(new Error('x'), { code: 7 })), undefined);
  assert.equal(systemCodeOf({ code: 'ENOENT' }), undefined);
});
