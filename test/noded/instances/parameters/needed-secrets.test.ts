import assert from 'node:assert/strict';
import { test } from 'node:test';
import { neededSecrets } from '#shared/contract/error-details.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  missingLogin,
  missingSecrets,
  refuseMissingSecrets,
} from '../../../../noded/instances/parameters/needed-secrets.ts';
import { planReinstall } from '../../../../noded/instances/record/plan-record.ts';
import { reinstallOpcode } from '../../support/opcodes.ts';
import { countingUuids, instanceRecord } from '../../support/records.ts';

const login = { personalizationUser: 'joe', personalizationPassword: 'x' };
const before = instanceRecord({
  osParametersSecret: { a: '1', b: '2' },
  personalizationPackage: 'http://host/a.tgz',
  ...login,
});

function missing(input: Parameters<typeof reinstallOpcode>[0]) {
  const opcode = reinstallOpcode(input);
  return missingSecrets(planReinstall(before, opcode, countingUuids()), opcode);
}

const nothing = { osParameters: [], packageUser: false, packagePassword: false };

test('a reinstallation needs every secret again that the record only names', () => {
  assert.deepEqual(missing({ ...login }), { ...nothing, osParameters: ['a', 'b'] });
  assert.deepEqual(missing({ ...login, osParametersSecret: { a: 'x' } }).osParameters, ['b']);
  assert.deepEqual(missing({ ...login, osParametersSecret: { a: 'x', b: 'y' } }), nothing);
  assert.deepEqual(missing({ ...login, osParameters: { a: 'public now', b: 'too' } }), nothing);
});

test('of a login at the package server, the user is needed as the password is', () => {
  const osParametersSecret = { a: 'x', b: 'y' };
  assert.deepEqual(missing({ osParametersSecret }), {
    ...nothing,
    packageUser: true,
    packagePassword: true,
  });
  assert.deepEqual(missing({ osParametersSecret, personalizationPassword: 'x' }), {
    ...nothing,
    packageUser: true,
  });
  assert.deepEqual(missing({ osParametersSecret, personalizationUser: 'joe' }), {
    ...nothing,
    packagePassword: true,
  });
  const other = { osParametersSecret, personalizationPackage: 'http://host/open.tgz' };
  assert.deepEqual(missing(other), nothing);
});

test('one half of a login asks for the other, in a first installation too', () => {
  const packageUser = { packageUser: true, packagePassword: false };
  assert.deepEqual(missingLogin(false, { personalizationPassword: 'x' }), packageUser);
  const packagePassword = { packageUser: false, packagePassword: true };
  assert.deepEqual(missingLogin(false, { personalizationUser: 'joe' }), packagePassword);
  const complete = { packageUser: false, packagePassword: false };
  assert.deepEqual([missingLogin(false, {}), missingLogin(false, login)], [complete, complete]);
});

test('the refusal names what is missing, with the option for each, and its details can be read back', () => {
  const asked = { osParameters: ['a'], packageUser: true, packagePassword: true };
  const isRefused = (error: unknown): boolean => {
    assert.ok(error instanceof AppError);
    assert.match(error.message, /: a, personalization-user, personalization-password$/);
    assert.match(error.hint ?? '', /NAME=@FILE and --personalization-user USER and .*@FILE$/);
    assert.deepEqual(neededSecrets.parse(error.details), asked);
    return error.code === 'SECRETS_NEEDED';
  };
  assert.throws(() => refuseMissingSecrets('it needs', asked), isRefused);
  refuseMissingSecrets('it needs', nothing);
});
