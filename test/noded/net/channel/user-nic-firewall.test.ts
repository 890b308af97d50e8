import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseResolvers, planWall } from '../../../../noded/net/channel/user-nic-firewall.ts';

const users = { first: 100, last: 199 };
const REACH = { confinesAll: false, networks: [], open: [], isHostOpen: false };

test('resolvers are the addresses of nameserver lines, once each, eight at most', () => {
  const many = Array.from({ length: 20 }, (_, index) => `nameserver 192.0.2.${index}`).join('\n');
  assert.equal(parseResolvers(many).length, 8);
  assert.deepEqual(
    parseResolvers(
      '# nameserver 1.1.1.1\nnameserver\t9.9.9.9\n nameserver fe80::1%eth0\nnameserver example.com\nnameserver 9.9.9.9 } drop\n',
    ),
    ['9.9.9.9', 'fe80::1'],
  );
});

test('accepting rules precede rejecting rules, in each family', () => {
  const rules = planWall('t', users, ['127.0.0.53', 'fe80::1'], REACH).split('\n');
  const place = (text: string): number => rules.findIndex((rule) => rule.includes(text));
  for (const text of ['127.0.0.53', 'ip6 daddr { fe80::1 }', '169.254.0.0/16', 'fd00:ec2::254'])
    assert.ok(place(text) > 0, text);
  assert.ok(place('127.0.0.53') < place('169.254.0.0/16'));
  assert.ok(place('ip6 daddr { fe80::1 }') < place('fd00:ec2::254'));
  assert.match(planWall('t', users, [], REACH), /skuid 101-199/);
  assert.doesNotMatch(planWall('t', users, [], REACH), /dport/);
});

test('a table name that is not valid in a rule is refused', () => {
  assert.throws(() => planWall('t; flush ruleset', users, [], REACH));
});

test('users that may reach private networks skip the private chain, and allowed networks come first', () => {
  const open = planWall('t', users, [], { ...REACH, open: [150, 120], networks: ['10.1.0.0/16'] });
  assert.match(open, /machines meta skuid != \{ 120, 150 \} jump private/);
  assert.ok(open.indexOf('10.1.0.0/16 return') < open.indexOf('10.0.0.0/8'));
  const confined = planWall('t', users, [], { ...REACH, open: [150], confinesAll: true });
  assert.match(confined, /machines jump private/);
});

test('IPv6 addresses that a translator maps to closed networks are closed', () => {
  const rules = planWall('t', users, [], { ...REACH, networks: ['10.1.0.0/16', '10.2.0.9'] });
  for (const closed of ['64:ff9b::a00:0/104', '64:ff9b::a9fe:0/112', '::ffff:0:c0a8:0/112'])
    assert.match(rules, new RegExp(`ip6 daddr \\{[^}]*[ ]${closed}[,} ]`), closed);
  for (const named of ['64:ff9b::a01:0/112', '64:ff9b::a02:9/128'])
    assert.ok(rules.includes(`ip6 daddr ${named} return`), named);
});

test('a network that is not valid in a rule is refused', () => {
  assert.throws(() => planWall('t', users, [], { ...REACH, networks: ['10.0.0.0/8 accept'] }));
});
