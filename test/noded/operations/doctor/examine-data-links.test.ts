import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataLink } from '#shared/contract/data-links.ts';
import { judgeDataLinks } from '../../../../noded/operations/doctor/examine-data-links.ts';

const direct: DataLink = {
  ...{ node: 'node2', path: 'direct', address: { host: '192.0.2.2', port: 5082 }, reason: null },
};
const own = { address: { host: '2001:db8::1', port: 5082 }, reason: null };

test('a node without other nodes has no finding', () => {
  assert.deepEqual(judgeDataLinks({ ...own, links: [] }), []);
});

test('a blocked port is a warning that names node, reason and port', () => {
  const reason = 'connect ECONNREFUSED 192.0.2.3:5099';
  const address = { host: '192.0.2.3', port: 5099 };
  const blocked: DataLink = { node: 'node3', path: 'store', address, reason };
  const [listening, good, bad] = judgeDataLinks({ ...own, links: [direct, blocked] });
  assert.match(listening?.message ?? '', /\[2001:db8::1\]:5082/);
  assert.deepEqual([good?.level, good?.message], ['ok', 'direct TLS 1.3 to node2']);
  assert.equal(bad?.level, 'warning');
  assert.match(bad.message, /node3 goes through the store: connect ECONNREFUSED/);
  assert.match(bad.hint ?? '', /allow TCP from this node to 192\.0\.2\.3:5099/);
});

test('a node that does not listen, or does not announce an address, is a warning', () => {
  const reason = 'the store is a socket on this host';
  const earlier: DataLink = { node: 'node3', path: 'store', address: null, reason: 'no address' };
  const findings = judgeDataLinks({ address: null, reason, links: [earlier] });
  assert.deepEqual(
    findings.map(({ level }) => level),
    ['warning', 'warning'],
  );
  assert.match(findings[0]?.message ?? '', /accepts no data links.*the store is a socket/);
  assert.match(findings[1]?.hint ?? '', /--data-address/);
});
