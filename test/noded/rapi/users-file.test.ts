import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoginLimit } from '../../../noded/rapi/login-limit.ts';
import { parseUsers } from '../../../noded/rapi/users-file.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Of Ganeti's manual, for the password `abc123` of `jessica` and others. */
const DIGEST = '7046452df2cbb530877058712cf17bd4';

test("the users of Ganeti's manual have their roles", () => {
  const { users, refused } = parseUsers(
    [
      '# Hashed password for Jessica',
      `jessica {HA1}${DIGEST} write`,
      '',
      `  monitoring\t{ha1}${DIGEST.toUpperCase()}   read`,
      `superuser {HA1}${DIGEST} read,write`,
      `nobody-said {HA1}${DIGEST}`,
    ].join('\n'),
  );
  assert.deepEqual(refused, []);
  assert.deepEqual(
    [...users.values()].map(({ name, role }) => [name, role]),
    [
      ['jessica', 'write'],
      ['monitoring', 'read'],
      ['superuser', 'write'],
      ['nobody-said', 'read'],
    ],
  );
});

test('a password that can be read makes no user, and is not told', () => {
  const { users, refused } = parseUsers(
    ['jack abc123', 'fred {cleartext}foo555 write', 'ann {HA1}short write', 'lone'].join('\n'),
  );
  assert.equal(users.size, 0);
  assert.deepEqual(
    refused.map(({ line }) => line),
    [1, 2, 3, 4],
  );
  assert.doesNotMatch(JSON.stringify(refused), /abc123|foo555/);
});

test('an option that is misspelled makes no user with fewer rights than meant', () => {
  const { users, refused } = parseUsers(`jessica {HA1}${DIGEST} writ`);
  assert.equal(users.size, 0);
  assert.equal(refused[0]?.reason, 'options are read and write');
});

test('ten wrong passwords of an address are looked at in a minute, those of others too', () => {
  const clock = new ManualClock();
  const limit = new LoginLimit(clock);
  for (let count = 0; count < 10; count++) {
    assert.equal(limit.waitS('192.0.2.1'), 0);
    limit.failed('192.0.2.1');
  }
  assert.equal(limit.waitS('192.0.2.1'), 60);
  assert.equal(limit.waitS('192.0.2.2'), 0);
  clock.advance(59_500);
  assert.equal(limit.waitS('192.0.2.1'), 1);
  clock.advance(500);
  assert.equal(limit.waitS('192.0.2.1'), 0);
  limit.failed('192.0.2.1');
  assert.equal(limit.waitS('192.0.2.1'), 0);
});
