import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { test } from 'node:test';
import { Secret } from '#shared/secret/secret.ts';
import {
  describeParameters,
  instanceLayer,
  listHiddenValues,
  osLayer,
  type ParameterLayer,
  refuseTooLarge,
  resolveParameters,
  revealParameters,
  withoutLostSecrets,
} from '../../../../noded/instances/parameters/os-parameters.ts';
import { instanceRecord } from '../../support/records.ts';

const os = osLayer({
  name: 'debian',
  osParameters: { a: 'os', b: 'os' },
  osParametersPrivate: { c: 'os', d: 'os', e: 'os' },
});
const variant = osLayer({
  name: 'debian+small',
  osParameters: { c: 'variant' },
  osParametersPrivate: { b: 'variant' },
});
const own = instanceLayer(
  instanceRecord({
    osParameters: { d: 'instance' },
    osParametersSecret: { e: 'x', lost: 'x' },
  }),
  new Map([['e', new Secret('S3CRET')]]),
);
const parameters = resolveParameters([os, variant, own]);

test('the last layer that has a name wins, whatever its visibility', () => {
  assert.deepEqual(describeParameters(parameters), {
    a: { value: 'os', visibility: 'public', source: 'os debian' },
    b: { value: '<redacted>', visibility: 'private', source: 'os debian+small' },
    c: { value: 'variant', visibility: 'public', source: 'os debian+small' },
    d: { value: 'instance', visibility: 'public', source: 'instance' },
    e: { value: '<redacted>', visibility: 'secret', source: 'instance' },
    lost: { value: '<redacted>', visibility: 'secret', source: 'instance' },
  });
});

test('a further layer needs no change of those who ask', () => {
  const profile: ParameterLayer = {
    source: 'profile web',
    values: new Map([['b', { visibility: 'public', value: 'profile' }]]),
  };
  assert.deepEqual(describeParameters(resolveParameters([os, profile, variant]))['b'], {
    value: '<redacted>',
    visibility: 'private',
    source: 'os debian+small',
  });
  assert.equal(revealParameters(resolveParameters([os, variant, profile, own]))['b'], 'profile');
});

test('scripts get what is known, and a lost secret is not replaced by a default below it', () => {
  const known = { a: 'os', b: 'variant', c: 'variant', d: 'instance', e: 'S3CRET' };
  assert.deepEqual(revealParameters(parameters), known);
  const lost = instanceLayer(instanceRecord({ osParametersSecret: { a: 'x' } }), new Map());
  assert.deepEqual(Object.keys(revealParameters(resolveParameters([os, lost]))), [
    'b',
    'c',
    'd',
    'e',
  ]);
  assert.ok(!withoutLostSecrets(resolveParameters([os, lost])).has('a'));
});

test('logs hide the private and secret values in force, and no public one', () => {
  assert.deepEqual(listHiddenValues(parameters), ['variant', 'S3CRET']);
});

test('a secret cannot be printed with the parameters around it', () => {
  const printed = inspect([...parameters], { depth: 9 }) + JSON.stringify([...parameters]);
  assert.ok(!printed.includes('S3CRET'));
});

test('parameters in force that no script can be started with are refused, and none is told', () => {
  const large = (name: string): ParameterLayer => ({
    source: name,
    values: new Map(
      Array.from({ length: 9 }, (_, at) => [
        `${name}${at}`,
        { visibility: 'private' as const, value: 'k3y'.repeat(21_000) },
      ]),
    ),
  });
  refuseTooLarge(resolveParameters([large('os')]));
  assert.throws(() => refuseTooLarge(resolveParameters([large('os'), large('instance')])), {
    code: 'OS_PARAMETER',
    message: /1134[0-9]+ bytes of names and values, more than 1048576$/,
  });
});
