import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { answerDhcp } from '../../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../../metad/dhcp/codec.ts';
import { dhcpMessage } from '../support/dhcp-fixture.ts';

test('a DISCOVER is read with its MAC, flags and transaction', () => {
  const request = parseDhcpRequest(dhcpMessage({ type: 1, flags: 0x8000 }));
  assert.equal(request?.type, 'discover');
  assert.equal(request?.mac, '52:54:00:e1:a3:45');
  assert.equal(request?.transactionId, 0x12345678);
  assert.equal(request?.flags, 0x8000);
  assert.equal(request?.requestedAddress, null);
});

test('malformed messages are refused', () => {
  const good = dhcpMessage({ type: 1 });
  const changed = (offset: number, value: number): Buffer => {
    const bytes = Buffer.from(good);
    bytes[offset] = value;
    return bytes;
  };
  const cases: [string, Buffer][] = [
    ['empty', Buffer.alloc(0)],
    ['cut in the fixed part', good.subarray(0, 200)],
    ['cut in an option', Buffer.concat([good.subarray(0, 240), Buffer.from([53])])],
    [
      'option longer than the message',
      Buffer.concat([good.subarray(0, 240), Buffer.from([53, 9, 1])]),
    ],
    ['a reply', changed(0, 2)],
    ['not Ethernet', changed(1, 6)],
    ['a MAC of 16 bytes', changed(2, 16)],
    ['no cookie', changed(236, 0)],
    ['unknown type', dhcpMessage({ type: 99 })],
    ['a type of two bytes', dhcpMessage({ type: 1, options: [53, 1, 3] })],
    ['BOOTP without a type', Buffer.concat([good.subarray(0, 240), Buffer.from([255])])],
  ];
  for (const [name, bytes] of cases) assert.equal(parseDhcpRequest(bytes), null, name);
});

test('random bytes do not make the codec or the server throw', () => {
  const client = { mac: '52:54:00:e1:a3:45', ip: '169.254.0.1', hostName: 'web1' };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 700 }), fc.boolean(), (noise, isFramed) => {
      const bytes = isFramed
        ? Buffer.concat([dhcpMessage({ type: 3 }).subarray(0, 240), noise])
        : Buffer.from(noise);
      const request = parseDhcpRequest(bytes);
      if (request) answerDhcp(client, request);
    }),
    { numRuns: 5000 },
  );
});
