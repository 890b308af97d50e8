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

/** Decodes message type, yiaddr and options of an answer, independently of the codec. */
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

test('a REQUEST for the instance’s own address is acknowledged, and for any other address refused', () => {
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

const boot = {
  script: 'http://169.254.169.254/ganeti/latest/boot/52:54:00:e1:a3:45.ipxe',
  loader: 'http://169.254.169.254/ganeti/latest/boot/machines/u/boot/EFI/boot/bootx64.efi',
};

/** Returns options 60, 67 and 175 of the answer to a DISCOVER with these options. */
function bootOptionsFor(
  options: readonly (readonly [number, readonly number[] | string])[],
  urls: typeof boot | { script: string; loader: null } | null = boot,
): readonly (string | undefined)[] {
  const encoded = options.flatMap(([code, content]) => {
    const bytes = Buffer.from(content);
    return [code, bytes.length, ...bytes];
  });
  const request = parseDhcpRequest(dhcpMessage({ type: 1, options: encoded }));
  assert.ok(request);
  const found = read(answerDhcp({ ...client, boot: urls }, request)).options;
  assert.equal(found.has(3) || found.has(6), false);
  return [60, 67, 175]
    .map((code) => found.get(code))
    .map((b) => b && Buffer.from(b).toString('latin1'));
}

const NOTHING = [undefined, undefined, undefined];
const TO_SCRIPT = [undefined, boot.script, '\xb0\x01\x01'];
const PXE = [60, 'PXEClient:Arch:00000:UNDI:002001'] as const;
const HTTP = [60, 'HTTPClient:Arch:00016:UNDI:003001'] as const;

test('iPXE in a ROM gets the address of its script, for every encoding of its user class', () => {
  for (const userClass of ['iPXE', '\x04iPXE', '\x03foo\x04iPXE', '\x04iPXE\x05other'])
    assert.deepEqual(bootOptionsFor([PXE, [77, userClass]]), TO_SCRIPT, userClass);
  // In pieces, which are one option (RFC 3396).
  assert.deepEqual(bootOptionsFor([PXE, [77, 'iP'], [77, 'XE']]), TO_SCRIPT);
  assert.deepEqual(
    bootOptionsFor([
      [60, 'PXECl'],
      [77, 'iPXE'],
      [60, 'ient'],
    ]),
    TO_SCRIPT,
  );
  assert.deepEqual(bootOptionsFor([PXE, PXE, [77, 'iPXE']]), TO_SCRIPT);
});

test('clients other than iPXE in a ROM and EFI by HTTP get no boot option', () => {
  const others: Parameters<typeof bootOptionsFor>[0][] = [
    [],
    [PXE],
    [[77, 'iPXE']],
    [
      [60, 'd-i'],
      [77, 'iPXE'],
    ],
    [
      [60, 'PXEClientele'],
      [77, 'iPXE'],
    ],
    [PXE, [77, 'gPXE']],
    [PXE, [77, 'iPXE2']],
    [PXE, [77, '\x05iPXE']],
    [PXE, [77, '\x00iPXE']],
    [PXE, [77, '']],
    [PXE, [77, 'i'.repeat(255)]],
    [PXE, [77, Buffer.alloc(255, 1)], [77, Buffer.alloc(255, 1)]].map(
      ([code, content]) => [code as number, [...Buffer.from(content as string)]] as const,
    ),
    [HTTP],
    [HTTP, [93, [0, 7]]],
    [HTTP, [93, [16]]],
  ];
  for (const options of others) assert.deepEqual(bootOptionsFor(options), NOTHING);
  assert.deepEqual(bootOptionsFor([PXE, [77, 'iPXE']], null), NOTHING);
});

test('EFI that boots by HTTP gets the address of the loader, or no boot option without a loader', () => {
  const asked = [HTTP, [93, [0, 16]]] as const;
  assert.deepEqual(bootOptionsFor(asked), ['HTTPClient', boot.loader, undefined]);
  const several = [HTTP, [93, [0, 7, 0, 16]]] as const;
  assert.deepEqual(bootOptionsFor(several), ['HTTPClient', boot.loader, undefined]);
  assert.deepEqual(bootOptionsFor(asked, { ...boot, loader: null }), NOTHING);
});

test('a boot option is neither in a refusal nor for a foreign MAC', () => {
  const options = [60, 9, ...Buffer.from('PXEClient'), 77, 4, ...Buffer.from('iPXE')];
  const answerFor = (parts: Partial<DhcpMessageParts>): DhcpAnswer | null => {
    const request = parseDhcpRequest(
      dhcpMessage({ type: 3, ...parts, options: [...options, ...(parts.options ?? [])] }),
    );
    assert.ok(request);
    return answerDhcp({ ...client, boot }, request);
  };
  assert.equal(read(answerFor({ options: [50, 4, 10, 0, 0, 1] })).options.has(67), false);
  assert.equal(read(answerFor({ options: [50, 4, ...OWN] })).options.has(67), true);
  assert.equal(answerFor({ mac: [0x52, 0x54, 0, 0, 0, 1], options: [50, 4, ...OWN] }), null);
});
