import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerDhcp } from '../../../metad/dhcp/answer.ts';
import type { DhcpAnswer } from '../../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../../metad/dhcp/codec.ts';
import { dhcpMessage } from '../support/dhcp-fixture.ts';
import type { DhcpMessageParts } from '../support/dhcp-fixture.ts';

const client = { mac: '52:54:00:e1:a3:45', ip: '169.254.7.9', hostName: 'web1.example.com' };
const OWN = [169, 254, 7, 9];
const SERVER = [169, 254, 169, 254];

function answerTo(parts: DhcpMessageParts): DhcpAnswer | null {
  const request = parseDhcpRequest(dhcpMessage(parts));
  assert.ok(request);
  return answerDhcp(client, request);
}

/** Message type, yiaddr and options of an answer, read back by hand. */
function read(answer: DhcpAnswer | null): {
  type: number | undefined;
  yiaddr: string;
  options: Map<number, number[]>;
} {
  assert.ok(answer);
  const { bytes } = answer;
  const options = new Map<number, number[]>();
  for (let at = 240; bytes[at] !== 255; at += 2 + (bytes[at + 1] ?? 0)) {
    options.set(bytes[at] ?? 0, [...bytes.subarray(at + 2, at + 2 + (bytes[at + 1] ?? 0))]);
  }
  return { type: options.get(53)?.[0], yiaddr: [...bytes.subarray(16, 20)].join('.'), options };
}

test('a DISCOVER is offered the instance’s own address by broadcast', () => {
  const answer = answerTo({ type: 1 });
  const { type, yiaddr, options } = read(answer);
  assert.equal(type, 2);
  assert.equal(yiaddr, client.ip);
  assert.equal(answer?.destination, '255.255.255.255');
  assert.deepEqual(options.get(54), SERVER);
  assert.deepEqual(options.get(121), [32, 169, 254, 169, 254, 0, 0, 0, 0]);
  assert.equal(Buffer.from(options.get(12) ?? []).toString(), 'web1');
  assert.ok(Buffer.from(options.get(51) ?? []).readUInt32BE() >= 86_400);
});

test('no answer names a router or a DNS server', () => {
  for (const parts of [
    { type: 1 },
    { type: 3, options: [50, 4, ...OWN] },
    { type: 8, ciaddr: OWN },
  ]) {
    const { options } = read(answerTo(parts));
    assert.equal(options.has(3) || options.has(6), false);
  }
});

test('a REQUEST for the own address is acknowledged, for any other one refused', () => {
  assert.equal(read(answerTo({ type: 3, options: [50, 4, ...OWN, 54, 4, ...SERVER] })).type, 5);
  assert.equal(read(answerTo({ type: 3, options: [50, 4, ...OWN] })).type, 5);
  const refused = answerTo({ type: 3, options: [50, 4, 10, 0, 0, 1] });
  assert.equal(read(refused).type, 6);
  assert.equal(read(refused).yiaddr, '0.0.0.0');
  assert.equal(refused?.destination, '255.255.255.255');
});

test('a renewal is answered to the address, and a foreign address is refused', () => {
  const answer = answerTo({ type: 3, ciaddr: OWN });
  assert.equal(read(answer).type, 5);
  assert.equal(answer?.destination, client.ip);
  assert.equal(read(answerTo({ type: 3, ciaddr: [10, 0, 0, 1] })).type, 6);
});

test('an INFORM is acknowledged without a lease', () => {
  const { type, yiaddr, options } = read(answerTo({ type: 8, ciaddr: OWN }));
  assert.equal(type, 5);
  assert.equal(yiaddr, '0.0.0.0');
  assert.equal(options.has(51), false);
});

test('other MACs, relays, other servers’ clients, releases and declines get no answer', () => {
  assert.equal(answerTo({ type: 1, mac: [0x52, 0x54, 0, 0, 0, 1] }), null);
  assert.equal(answerTo({ type: 1, giaddr: [10, 0, 0, 1] }), null);
  assert.equal(answerTo({ type: 3, options: [50, 4, ...OWN, 54, 4, 10, 0, 0, 1] }), null);
  assert.equal(answerTo({ type: 3 }), null);
  assert.equal(answerTo({ type: 4 }), null);
  assert.equal(answerTo({ type: 7 }), null);
});
