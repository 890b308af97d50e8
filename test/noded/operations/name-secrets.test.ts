import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameSecrets } from '../../../noded/operations/check-given-secrets.ts';
import { instanceRecord } from '../support/records.ts';

test('a secret that is given at a start is named in the record, by its name alone', () => {
  const before = instanceRecord({}, { secretNames: ['one'] });
  assert.deepEqual(nameSecrets(before, ['two', 'one']).secretNames, ['one', 'two']);
  assert.equal(nameSecrets(before, ['one']), before);
});

test('a secret that takes the place of a value for one run leaves the value in the record', () => {
  const before = instanceRecord({}, { osParameters: { owner: 'x' }, secretNames: [] });
  assert.equal(nameSecrets(before, ['owner']), before);
});
