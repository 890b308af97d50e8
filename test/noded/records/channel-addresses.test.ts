import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { channelIp, macAddress } from '#shared/contract/primitives.ts';
import {
  channelIpCandidates,
  randomChannelMac,
  randomNicMac,
} from '../../../noded/records/channel-addresses.ts';

const first = (lastGiven: string | undefined): string | undefined =>
  channelIpCandidates(lastGiven).next().value as string | undefined;

test('offers every usable address exactly once, whatever was given last', () => {
  for (const lastGiven of [undefined, '169.254.1.0', '169.254.169.253', '169.254.254.255']) {
    const offered = [...channelIpCandidates(lastGiven)];
    assert.equal(offered.length, 65_023);
    assert.equal(new Set(offered).size, 65_023);
    assert.ok(!offered.includes('169.254.169.254'));
  }
});

test('never offers the service, the network, the broadcast, or what RFC 3927 reserves', () => {
  for (const ip of channelIpCandidates(undefined)) {
    if (!channelIp.safeParse(ip).success) assert.fail(ip);
    if (ip.startsWith('169.254.0.') || ip.startsWith('169.254.255.')) assert.fail(ip);
  }
});

test('begins after the address given last, steps over the service and goes round at the end', () => {
  assert.equal(first(undefined), '169.254.1.0');
  assert.equal(first('169.254.1.0'), '169.254.1.1');
  assert.equal(first('169.254.1.255'), '169.254.2.0');
  assert.equal(first('169.254.169.253'), '169.254.169.255');
  assert.equal(first('169.254.254.255'), '169.254.1.0');
});

test('offers the address given last as the very last one', () => {
  assert.equal([...channelIpCandidates('169.254.7.9')].at(-1), '169.254.7.9');
});

test('a stored address that is none of ours begins a new round', () => {
  for (const odd of ['10.0.0.1', '169.254.255.255', 'nonsense', ''])
    assert.equal(first(odd), '169.254.1.0', odd);
});

test('MACs are well formed, of one host, and carry their prefix', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 3, maxLength: 3 }), (bytes) => {
      const random = (): Buffer => Buffer.from(bytes);
      for (const mac of [randomChannelMac(random), randomNicMac(undefined, random)]) {
        assert.ok(macAddress.safeParse(mac).success, mac);
        assert.equal(Number.parseInt(mac.slice(0, 2), 16) & 1, 0, 'multicast');
      }
      assert.ok(randomChannelMac(random).startsWith('52:54:00:'));
      assert.ok(randomNicMac(undefined, random).startsWith('aa:00:00:'));
    }),
  );
});
