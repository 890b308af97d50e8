import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkOf } from '#shared/socket/network-of.ts';
import { LoginLimit } from '../../../../noded/api/rapi/login-limit.ts';
import { parseUsers } from '../../../../noded/api/rapi/users-file.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** From Ganeti's manual, for the password `abc123` of `jessica` and others. */
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
  assert.match(refused[0]?.reason ?? '', /^The options are read, write, tag:TAG, /);
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

test('guesses from one IPv6 network count together, from any of its addresses', () => {
  const limit = new LoginLimit(new ManualClock());
  for (let count = 1; count <= 10; count++) limit.failed(`2001:db8:1:2::${count.toString(16)}`);
  assert.ok(limit.waitS('2001:db8:1:2:ffff::9') > 0);
  assert.equal(limit.waitS('2001:db8:1:3::1'), 0);
  for (const [address, network] of [
    ['2001:DB8::1', '2001:db8:0:0::/64'],
    ['2001:0db8:0000:0000:1::', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['192.0.2.7', '192.0.2.7'],
  ] as const) {
    assert.equal(networkOf(address), network, address);
  }
});

test('a user is bound by tags and names, and a binding that is spelt wrong makes no user', () => {
  const line = (options: string): string => `ann {HA1}${DIGEST} ${options}`;
  const scopeOf = (options: string) => parseUsers(line(options)).users.get('ann')?.scope;
  assert.equal(scopeOf('write'), null);
  assert.deepEqual(scopeOf('write,tag:team-a,instance:a-*,link:br-a'), {
    tags: ['team-a'],
    names: ['a-*'],
    links: ['br-a'],
  });
  assert.equal(scopeOf('write,link:br-a'), undefined);
  for (const options of ['write,tags:team-a', 'write,tag:', 'write,instance=a-*', 'tag']) {
    assert.equal(parseUsers(line(options)).users.size, 0, options);
  }
});

test('quotas are part of a binding, and a quota that cannot be read makes no user', () => {
  const scopeOf = (options: string) =>
    parseUsers(`ann {HA1}${DIGEST} ${options}`).users.get('ann')?.scope;
  const all = 'max-instances:3,max-memory:1.5G,max-vcpus:8,max-disk:1T';
  assert.deepEqual(scopeOf(`write,tag:a,${all}`)?.quota, {
    ...{ instances: 3, memoryMiB: 1536, vcpus: 8, diskBytes: 2 ** 40 },
  });
  assert.equal(scopeOf('write,tag:a')?.quota, undefined);
  assert.deepEqual(scopeOf('tag:a,max-instances:0')?.quota, { instances: 0 });
  for (const options of [
    ...['max-memory:1G', 'write,max-vcpus:1', 'tag:a,max-vcpus:', 'tag:a,max-vcpus:-1'],
    ...['tag:a,max-vcpus:1.5', 'tag:a,max-memory:lots', 'tag:a,max-memory:0', 'tag:a,max-cpus:1'],
    ...['tag:a,max-vcpus:1,max-vcpus:9', 'tag:a,max-disk=1T', 'tag:a,__proto__:1'],
  ])
    assert.equal(scopeOf(options), undefined, options);
});
