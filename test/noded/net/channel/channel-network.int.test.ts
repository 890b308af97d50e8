import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { createChannelNetwork } from '../../../../noded/net/channel/channel-network.ts';
import type { ChannelNetwork } from '../../../../noded/net/channel/channel-network.ts';
import { silentLogger } from '#shared/log/log.ts';

const namespace = `gnt-test-net-${process.pid}`;
const first = { ip: '169.254.7.1', mac: 'aa:00:00:00:07:01' };
const second = { ip: '169.254.7.2', mac: 'aa:00:00:00:07:02' };

function ip(...args: readonly string[]): string {
  return execFileSync('ip', ['-n', namespace, ...args], { encoding: 'utf8' });
}
function ruleset(): string {
  return execFileSync('ip', ['netns', 'exec', namespace, 'nft', 'list', 'ruleset'], {
    encoding: 'utf8',
  });
}
function sysctl(name: string): string {
  const args = ['netns', 'exec', namespace, 'sysctl', '-n', name];
  return execFileSync('ip', args, { encoding: 'utf8' }).trim();
}

function hostPortStart(): string {
  const args = ['-n', 'net.ipv4.ip_unprivileged_port_start'];
  return execFileSync('sysctl', args, { encoding: 'utf8' });
}
const portStartBefore = hostPortStart();

describe("the channel's network", () => {
  let network: ChannelNetwork;
  before(async () => {
    network = createChannelNetwork({ namespace, logger: silentLogger });
    await network.ensureNamespace();
  });
  after(async () => {
    await network.close();
    if (existsSync(`/run/netns/${namespace}`)) execFileSync('ip', ['netns', 'del', namespace]);
  });

  test('has a namespace with lo up, no forwarding, reverse path filtering and unprivileged ports from 67', async () => {
    assert.match(ip('link', 'show', 'lo'), /LOOPBACK,UP/);
    assert.equal(sysctl('net.ipv4.ip_forward'), '0');
    assert.equal(sysctl('net.ipv6.conf.all.forwarding'), '0');
    assert.equal(sysctl('net.ipv4.conf.default.rp_filter'), '1');
    assert.equal(sysctl('net.ipv4.conf.all.accept_source_route'), '0');
    assert.equal(sysctl('net.ipv4.ip_unprivileged_port_start'), '67');
  });

  test('leaves ip_unprivileged_port_start of the host unchanged', () => {
    assert.equal(hostPortStart(), portStartBefore);
  });

  test('gives a TAP the service addresses, the route to its guest and a permanent neighbour entry', async () => {
    const tap = await network.openTap(first);
    try {
      const addresses = ip('addr', 'show', 'dev', tap.device);
      assert.match(addresses, /inet 169\.254\.169\.254\/32/);
      assert.match(addresses, /inet6 fe80::a9fe:a9fe\/64 scope link nodad/);
      assert.equal(addresses.match(/inet6/g)?.length, 1);
      assert.match(addresses, /,UP/);
      assert.match(ip('route'), /169\.254\.7\.1 dev gnt\.com\.0 .* src 169\.254\.169\.254/);
      assert.match(ip('neigh'), /169\.254\.7\.1 .* lladdr aa:00:00:00:07:01 PERMANENT/);
      assert.equal(sysctl(`net/ipv6/conf/${tap.device}/accept_ra`), '0');
    } finally {
      tap.close();
      await network.releaseTap(tap.device);
    }
  });

  test('keeps the service address of a TAP when another TAP is removed', async () => {
    const [one, two] = [await network.openTap(first), await network.openTap(second)];
    try {
      assert.deepEqual([one.device, two.device], ['gnt.com.0', 'gnt.com.1']);
      one.close();
      await network.releaseTap(one.device);
      assert.deepEqual(await network.listTaps(), ['gnt.com.1']);
      assert.match(
        ip('route', 'show', 'table', 'local'),
        /local 169\.254\.169\.254 dev gnt\.com\.1/,
      );
    } finally {
      two.close();
      await network.releaseTap(two.device);
    }
  });

  test('does not reuse the name of a closed TAP before it is released', async () => {
    const dead = await network.openTap(first);
    dead.close();
    const next = await network.openTap(second);
    try {
      assert.notEqual(next.device, dead.device);
      await network.releaseTap(dead.device);
      assert.match(ruleset(), new RegExp(`chain from_${next.device}`));
    } finally {
      next.close();
      await network.releaseTap(next.device);
    }
  });

  test('opens many TAPs at once under different names', async () => {
    const guests = Array.from({ length: 8 }, (_, index) => ({
      ip: `169.254.8.${index + 1}`,
      mac: `aa:00:00:00:08:0${index + 1}`,
    }));
    const taps = await Promise.all(guests.map((guest) => network.openTap(guest)));
    try {
      assert.equal(new Set(taps.map((tap) => tap.device)).size, guests.length);
      assert.equal((await network.listTaps()).length, guests.length);
    } finally {
      for (const tap of taps) tap.close();
      await Promise.all(taps.map((tap) => network.releaseTap(tap.device)));
    }
    assert.doesNotMatch(ruleset(), /gnt\.com\./);
  });

  test('leaves neither TAP nor rules when a guest cannot be set up', async () => {
    const before = ruleset();
    await assert.rejects(network.openTap({ ip: '169.254.7.1; flush ruleset', mac: first.mac }), {
      code: 'NETWORK_SETUP',
    });
    assert.deepEqual(await network.listTaps(), []);
    assert.equal(ruleset(), before);
    const tap = await network.openTap(first);
    assert.equal(tap.device, 'gnt.com.0');
    tap.close();
    await network.releaseTap(tap.device);
  });

  test('a restarted daemon repairs the TAP of a running guest', async () => {
    const tap = await network.openTap(first);
    const successor = createChannelNetwork({ namespace, logger: silentLogger });
    try {
      ip('addr', 'flush', 'dev', tap.device);
      ip('link', 'set', tap.device, 'down');
      execFileSync('ip', ['netns', 'exec', namespace, 'nft', 'flush', 'ruleset']);
      await successor.ensureNamespace();
      await successor.repairTap(tap.device, first);
      assert.match(ip('addr', 'show', 'dev', tap.device), /169\.254\.169\.254\/32/);
      assert.match(ip('route'), /169\.254\.7\.1 dev gnt\.com\.0/);
      assert.match(ruleset(), /chain from_gnt\.com\.0/);
      await successor.repairTap(tap.device, first);
      await assert.rejects(successor.repairTap('gnt.com.77', second), { code: 'NETWORK_SETUP' });
      await successor.releaseTap('gnt.com.77');
    } finally {
      tap.close();
      await successor.releaseTap(tap.device);
      await successor.close();
      await network.releaseTap(tap.device);
    }
  });

  test('removes a TAP that is still open when it is released', async () => {
    const tap = await network.openTap(first);
    try {
      await network.releaseTap(tap.device);
      assert.deepEqual(await network.listTaps(), []);
    } finally {
      tap.close();
    }
  });

  test('refuses to touch a device that is not a TAP of the channel', () => {
    assert.throws(() => network.releaseTap('eth0'), /not a TAP/);
    assert.throws(() => network.repairTap('gnt.com.01', first), /not a TAP/);
  });

  test('keeps the namespace while a TAP exists, and reserves the exposed ports', async () => {
    const tap = await network.openTap(first);
    await network.setServicePorts({ tcp: [40_000, 8080, 8080], udp: [8080, 53] });
    assert.equal(sysctl('net.ipv4.ip_local_reserved_ports'), '53,8080,40000');
    assert.equal(await network.removeNamespace(), false);
    tap.close();
    await network.releaseTap(tap.device);
    await network.setServicePorts({ tcp: [], udp: [] });
    assert.equal(sysctl('net.ipv4.ip_local_reserved_ports'), '');
    assert.equal(await network.removeNamespace(), true);
    assert.equal(existsSync(`/run/netns/${namespace}`), false);
    assert.equal(await network.removeNamespace(), true);
    assert.deepEqual(await network.listTaps(), []);
    await network.ensureNamespace();
    const again = await network.openTap(first);
    assert.equal(again.device, 'gnt.com.0');
    again.close();
  });
});
