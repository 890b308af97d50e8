import assert from 'node:assert/strict';
import { answerDhcp } from '../../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../../metad/dhcp/codec.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { dhcpMessage } from '../../metad/support/dhcp-fixture.ts';
import { mutate } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

const MAC = [0x52, 0x54, 0, 0xe1, 0xa3, 0x45];
const BOOT = 'http://169.254.169.254/ganeti/latest/boot/machines';
const CLIENT = {
  mac: '52:54:00:e1:a3:45',
  ip: '169.254.0.1',
  hostName: 'web1',
  boot: { script: `${BOOT}.ipxe`, loader: `${BOOT}/x.efi` },
};
/** Option contents sent by firmware. */
const CONTENTS = [
  'PXEClient',
  'PXEClient:Arch:00000',
  'HTTPClient',
  'iPXE',
  '\x04iPXE',
  '\x00\x10',
];
/** Option codes that the parser knows, and others. */
const CODES = [0, 12, 50, 50, 53, 54, 55, 60, 60, 61, 77, 77, 82, 93, 255];

/** Checks DHCP: parsed values are in the bytes, and an answer goes only to its client. */
export function dhcpTarget(parse: typeof parseDhcpRequest = parseDhcpRequest): Target {
  return { name: 'dhcp', generate, open: () => openPure((input) => check(input, parse)) };
}

function generate(random: SeededRandom): Buffer {
  const bytes = (count: number): number[] => Array.from({ length: count }, () => random.below(256));
  const options = Array.from({ length: random.below(6) }, () => {
    const content =
      random.below(3) === 0
        ? [...Buffer.from(random.pick(CONTENTS), 'latin1')]
        : bytes(random.pick([0, 1, 4, 4, 4, 16, 255]));
    return [random.pick(CODES), content.length, ...content];
  });
  const message = dhcpMessage({
    type: 1 + random.below(8),
    transactionId: bytes(4),
    flags: random.below(65_536),
    ciaddr: bytes(4),
    giaddr: random.pick([[0, 0, 0, 0], bytes(4)]),
    mac: random.pick([MAC, MAC, bytes(6)]),
    options: options.flat(),
  });
  return random.below(4) === 0 ? message : mutate(message, random);
}

function check(input: Buffer, parse: typeof parseDhcpRequest): void {
  const before = Buffer.from(input);
  const request = parse(input);
  assert.ok(before.equals(input), 'the parser has changed its input');
  if (request === null) return;
  assert.equal(request.transactionId, input.readUInt32BE(4));
  assert.equal(request.mac.replaceAll(':', ''), input.toString('hex', 28, 34));
  assert.ok(request.hardwareAddress.equals(input.subarray(28, 44)));
  for (const address of [
    request.clientAddress,
    request.relayAddress,
    request.requestedAddress ?? '0.0.0.0',
    request.serverIdentifier ?? '0.0.0.0',
  ])
    assert.match(address, /^\d{1,3}(\.\d{1,3}){3}$/);
  const answer = answerDhcp(CLIENT, request);
  if (answer === null) return;
  assert.equal(request.mac, CLIENT.mac, 'an answer for a foreign MAC');
  const isBoot = answer.bytes.includes(BOOT);
  assert.ok(!isBoot || request.firmware, 'a boot option for who is no firmware');
  assert.equal(answer.bytes.readUInt32BE(4), request.transactionId);
  assert.ok(answer.bytes.length >= 300 && answer.bytes.length <= 576);
}
