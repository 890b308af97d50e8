import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';

test('the command is asked first, then the instance, then the cluster, and 0 is a word too', () => {
  const cluster = { installTimeoutS: 30 };
  assert.equal(installTimeoutOf({}, { installTimeoutS: null }, cluster), 30);
  assert.equal(installTimeoutOf({}, { installTimeoutS: 0 }, cluster), 0);
  assert.equal(installTimeoutOf({ installTimeoutS: 10 }, { installTimeoutS: 20 }, cluster), 10);
  assert.equal(installTimeoutOf({ installTimeoutS: 0 }, { installTimeoutS: 20 }, cluster), 0);
});
