import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import {
  createChannelNetwork,
  type ChannelNetwork,
  type ChannelTap,
} from '../../../../noded/net/channel/channel-network.ts';
import { icmp, type Ethernet, type Seen } from './frames.ts';
import { RawGuest } from './raw-guest.ts';

const namespace = `gnt-test-ra-${process.pid}`;
const ALL_ROUTERS: Omit<Ethernet, 'from'> = { to: '33:33:00:00:00:02' };
const SOLICITATION = 133;
const ADVERTISEMENT = 134;

let network: ChannelNetwork;
const taps: ChannelTap[] = [];

before(async () => {
  network = createChannelNetwork({ namespace, logger: silentLogger });
  await network.ensureNamespace();
});
after(async () => {
  for (const tap of taps) {
    tap.close();
    await network.releaseTap(tap.device);
  }
  const rules = execFileSync('ip', ['netns', 'exec', namespace, 'nft', 'list', 'ruleset']);
  await network.close();
  if (existsSync(`/run/netns/${namespace}`)) execFileSync('ip', ['netns', 'del', namespace]);
  assert.doesNotMatch(rules.toString(), /netdev/, 'a TAP that is gone leaves rules');
});

async function addGuest(number: number, boots: boolean): Promise<RawGuest> {
  const guest = { ip: `169.254.7.${number}`, mac: `aa:00:00:00:07:0${number}`, boots };
  const tap = await network.openTap(guest);
  taps.push(tap);
  const raw = new RawGuest(tap, guest);
  await raw.meetHost();
  return raw;
}

/** As iPXE asks: with its MAC, 16 bytes in all. */
function solicit(guest: RawGuest, rest: Buffer): void {
  const mac = Buffer.from(guest.mac.replaceAll(':', ''), 'hex');
  const body = Buffer.concat([Buffer.alloc(4), Buffer.from([1, 1]), mac, rest]);
  const ip = { source: 'fe80::1', destination: 'ff02::2' };
  guest.send(icmp({ from: guest.mac, ...ALL_ROUTERS }, ip, SOLICITATION, 0, body));
}

/** The host's own kernel tells now and then which groups it is in. */
const GROUP_REPORTS = '33:33:00:00:00:16';

async function heardBy(guest: RawGuest): Promise<readonly Seen[]> {
  return (await guest.settle()).filter(({ to }) => to !== GROUP_REPORTS);
}

test('a router solicitation of booting firmware gets one advertisement without a router', async () => {
  const guest = await addGuest(1, true);
  solicit(guest, Buffer.alloc(0));
  const answers = (await heardBy(guest)).filter(({ kind }) => kind === 'icmpv6');
  assert.deepEqual(
    answers.map(({ detail, source, to }) => [detail, source.replaceAll(':', ''), to]),
    [[ADVERTISEMENT, 'fe8000000000000000000000a9fea9fe'.padStart(32, '0'), '33:33:00:00:00:01']],
  );
  solicit(guest, Buffer.alloc(8));
  assert.deepEqual(await heardBy(guest), [], 'nothing is sent back but what was measured');
});

test('a router solicitation of a guest that does not boot by the channel gets no answer', async () => {
  const guest = await addGuest(2, false);
  solicit(guest, Buffer.alloc(0));
  assert.deepEqual(await heardBy(guest), []);
});
