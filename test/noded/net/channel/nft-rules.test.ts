import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  planBaseRules,
  planServicePorts,
  planTapRules,
  planTapRulesRemoval,
} from '../../../../noded/net/channel/nft-rules.ts';

const guest = { ip: '169.254.1.2', mac: 'aa:00:00:00:00:01' };
const lines = (text: string): readonly string[] => text.split('\n').filter(Boolean);

test('the policy of the prerouting, input and forward chains is drop', () => {
  const chains = lines(planBaseRules()).filter((line) => line.includes(' hook '));
  assert.deepEqual(
    chains.map((line) => /hook (\w+) .*policy (\w+)/.exec(line)?.slice(1)),
    [
      ['prerouting', 'drop'],
      ['input', 'drop'],
      ['forward', 'drop'],
      ['output', 'accept'],
      ['input', 'drop'],
    ],
  );
});

test('the base rules replace each chain that they fill, so that they can be applied again', () => {
  const text = lines(planBaseRules());
  const filled = new Set(text.flatMap((line) => /^add rule (\w+ \w+ \w+)/.exec(line)?.[1] ?? []));
  for (const chain of filled) assert.ok(text.includes(`flush chain ${chain}`), chain);
});

test("a TAP's chain drops foreign MACs first, and ends with a drop rule", () => {
  const rules = lines(planTapRules('gnt.com.3', guest)).filter((line) =>
    line.startsWith('add rule inet gnt from_gnt.com.3'),
  );
  assert.match(rules[0] ?? '', /ether saddr != aa:00:00:00:00:01 drop$/);
  assert.match(rules.at(-1) ?? '', /from_gnt\.com\.3 drop$/);
});

test("the limit of a TAP's new connections precedes every accepting rule", () => {
  const rules = lines(planTapRules('gnt.com.3', { ...guest, newConnectionsPerSecond: 50 }));
  const limit = rules.findIndex((line) => line.includes('limit rate over 50/second burst 100'));
  const first = rules.findIndex((line) => /(accept|goto)/.test(line));
  assert.ok(limit !== -1 && limit < first);
  assert.match(rules[limit] ?? '', /syn limit .* drop$/);
});

test("the limit of a TAP's datagrams precedes every accepting rule", () => {
  const rules = lines(planTapRules('gnt.com.3', { ...guest, newConnectionsPerSecond: 50 }));
  const limit = rules.findIndex((line) => /l4proto udp limit rate over 50\/second/.test(line));
  const first = rules.findIndex((line) => /(accept|goto)/.test(line));
  assert.ok(limit !== -1 && limit < first);
});

test('a TAP has the rule that answers router solicitations only where firmware boots by it', () => {
  const text = planTapRules('gnt.com.3', { ...guest, boots: true });
  assert.match(text, /^add rule netdev gnt_gnt\.com\.3 .* fwd to "gnt\.com\.3"$/m);
  assert.doesNotMatch(planTapRules('gnt.com.3', guest), /fwd/);
  assert.match(planTapRulesRemoval('gnt.com.3'), /^delete table netdev gnt_gnt\.com\.3$/m);
});

test('every IPv4 source that a TAP accepts is the guest itself or unspecified', () => {
  const accepted = lines(planTapRules('gnt.com.3', guest)).flatMap(
    (line) => /\bip saddr (\{[^}]*\}|\S+).*(?:accept|goto)/.exec(line)?.[1] ?? [],
  );
  assert.deepEqual(accepted, ['169.254.1.2', '{ 0.0.0.0, 169.254.1.2 }']);
});

test('a name, address, MAC or rate that is not valid in an nft rule is refused', () => {
  const bad = [
    () => planTapRules('gnt.com.0"; flush ruleset', guest),
    () => planTapRules('gnt.com.0', { ...guest, ip: '169.254.1.2 accept' }),
    () => planTapRules('gnt.com.0', { ...guest, newConnectionsPerSecond: 0 }),
    () => planTapRules('gnt.com.0', { ...guest, mac: 'aa:00:00:00:00:01\naccept' }),
    () => planTapRulesRemoval('gnt.com.0 }'),
  ];
  for (const plan of bad) assert.throws(plan, /not valid in an nft rule/);
});

test('no service ports is an empty set, not a syntax error', () => {
  const none = ['flush set inet gnt services', 'flush set inet gnt udp_services'];
  assert.deepEqual(lines(planServicePorts({ tcp: [], udp: [] })), none);
  assert.deepEqual(lines(planServicePorts({ tcp: [53, 8080], udp: [53, 123] })), [
    'flush set inet gnt services',
    'add element inet gnt services { 53, 8080 }',
    'flush set inet gnt udp_services',
    'add element inet gnt udp_services { 53, 123 }',
  ]);
});
