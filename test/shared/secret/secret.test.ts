import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, inspect } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { reveal, Secret } from '#shared/secret/secret.ts';

const VALUE = 's3cret-V4lue';

/** Ways to show, copy or write a value by accident. */
const leaks: Readonly<Record<string, (secret: Secret) => unknown>> = {
  'String()': (secret) => String(secret),
  // eslint-disable-next-line @typescript-eslint/restrict-template-expressions -- the accident under test
  'a template': (secret) => `${secret}`,
  concatenation: (secret) => ['', secret].join('x'),
  'JSON.stringify': (secret) => JSON.stringify({ a: [secret] }),
  inspect: (secret) => inspect({ secret }, { depth: 9, showHidden: true }),
  'inspect without custom': (secret) => inspect(secret, { customInspect: false, showHidden: true }),
  'format %s': (secret) => format('%s', secret),
  'format %o': (secret) => format('%o', secret),
  'format %O': (secret) => format('%O', secret),
  'format %j': (secret) => format('%j', secret),
  'format %d': (secret) => format('%d', secret),
  structuredClone: (secret) => inspect(structuredClone(secret), { showHidden: true }),
  'v8.serialize': (secret) => serialize(secret).toString('latin1'),
  'v8 round trip': (secret) => inspect(deserialize(serialize(secret)), { showHidden: true }),
  'a spread': (secret) => JSON.stringify({ ...secret }),
  'Object.entries': (secret) => JSON.stringify(Object.entries(secret)),
  'own names and symbols': (secret) => Reflect.ownKeys(secret).map(String).join(),
  'an error message': (secret) => inspect(new Error(String(secret), { cause: secret })),
  'an assertion': (secret) => {
    try {
      assert.deepEqual({ secret }, { secret: 1 });
    } catch (error) {
      return inspect(error);
    }
    return '';
  },
};

for (const [way, leak] of Object.entries(leaks)) {
  test(`${way} does not show the value of a secret`, () => {
    const shown = String(leak(new Secret(VALUE)));
    assert.ok(!shown.includes(VALUE), shown);
  });
}

test('only reveal gives the value', () => {
  assert.equal(reveal(new Secret(VALUE)), VALUE);
});

test('what only looks like a secret cannot be revealed', () => {
  const forged = Object.create(Secret.prototype) as Secret;
  assert.throws(() => reveal(forged), TypeError);
});
