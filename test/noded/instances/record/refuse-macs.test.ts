import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuseUnusableMacs } from '../../../../noded/instances/record/refuse-macs.ts';

for (const [what, macs] of [
  ['a MAC that two NICs share', ['02:00:00:00:00:01', '02:00:00:00:00:01']],
  ['a multicast MAC', ['01:80:c2:00:00:0e']],
  ['the MAC of zeros', ['00:00:00:00:00:00']],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(() => refuseUnusableMacs(macs), { code: 'VALIDATION' });
  });
}

test('takes MACs of single NICs', () => {
  refuseUnusableMacs(['02:00:00:00:00:01', 'aa:00:00:00:00:02']);
});
