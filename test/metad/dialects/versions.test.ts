import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { GANETI_VERSIONS, isVersionServed } from '../../../metad/dialects/versions.ts';

test('latest and every date from the first version on are served', () => {
  for (const segment of ['latest', '2026-12-01', '2026-12-02', '2031-02-28', '9999-12-31']) {
    assert.equal(isVersionServed(segment, GANETI_VERSIONS), true, segment);
  }
});

test('dates before the first version and malformed dates are not served', () => {
  for (const segment of [
    '2026-11-30',
    '2025-12-31',
    '2027-02-29',
    '2027-13-01',
    '2027-00-10',
    '2027-1-1',
    'Latest',
    '20270101',
    '2027-01-01 ',
    '1.0',
    '',
    '-2027-01-01',
    '٢٠٢٧-01-01',
  ]) {
    assert.equal(isVersionServed(segment, GANETI_VERSIONS), false, segment);
  }
});

test('paths find their dialect', () => {
  assert.deepEqual(resolveAddress(''), { kind: 'root' });
  assert.deepEqual(resolveAddress('ganeti'), { kind: 'versions', dialect: 'ganeti' });
  assert.deepEqual(resolveAddress('ganeti/latest'), { kind: 'entry', dialect: 'ganeti', path: '' });
  assert.deepEqual(resolveAddress('2021-03-23/meta-data'), {
    kind: 'entry',
    dialect: 'ec2',
    path: 'meta-data',
  });
  assert.deepEqual(resolveAddress('openstack/2018-08-27/user_data'), {
    kind: 'entry',
    dialect: 'openstack',
    path: 'user_data',
  });
  assert.deepEqual(resolveAddress('nocloud/user-data'), {
    kind: 'entry',
    dialect: 'nocloud',
    path: 'user-data',
  });
  for (const path of ['/latest/user-data', 'latest//user-data', '//latest///user-data']) {
    assert.deepEqual(resolveAddress(path), { kind: 'entry', dialect: 'ec2', path: 'user-data' });
  }
  for (const path of [
    '/',
    '/openstack',
    '/nocloud/user-data',
    'openstack//latest',
    '2008-01-01/user-data',
    'openstack/2011-01-01',
    'ganeti/1.0',
    'azure',
    'Latest',
  ]) {
    assert.equal(resolveAddress(path), undefined, path);
  }
});
