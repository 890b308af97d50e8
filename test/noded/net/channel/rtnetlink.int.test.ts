import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RouteNetlink, withHostLinks } from '../../../../noded/net/channel/rtnetlink.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../../../lab/own-network.ts';

const BRIDGE = 'gntbr0';
const MAC = '02:00:00:00:00:01';

function ip(args: readonly string[], input = ''): string {
  return execFileSync('ip', args, { encoding: 'utf8', input });
}

if (!hasOwnNetwork()) {
  test('the tests of links pass in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('netlink', netlinkTests);
}

function netlinkTests(): void {
  test('makes a bridge with an address, a port and an alternative name, and removes it', async () => {
    const alternative = 'gnt-alternative';
    ip(['link', 'add', 'gntv0', 'type', 'veth', 'peer', 'name', 'gntv1']);
    await using netlink = new RouteNetlink();
    await netlink.addBridge(BRIDGE, MAC);
    const { index } = await netlink.requireLink(BRIDGE);
    await netlink.enslaveLink((await netlink.requireLink('gntv0')).index, index);
    await netlink.changeAlternativeName('add', index, alternative);
    for (let times = 0; times < 2; times += 1) await netlink.ensureAddress(index, '10.9.0.1', 24);
    await netlink.setLinkUp(index);

    const shown = ip(['-d', 'address', 'show', 'dev', BRIDGE]);
    assert.match(shown, /,UP.* altname gnt-alternative\n/s);
    assert.match(shown, /link\/ether 02:00:00:00:00:01 .* bridge .* inet 10\.9\.0\.1\/24 /s);
    const links = await netlink.listLinks();
    assert.equal(links.find(({ name }) => name === 'gntv0')?.masterIndex, index);
    assert.deepEqual(links.find(({ name }) => name === BRIDGE)?.alternatives, [alternative]);
    assert.equal(await netlink.findLink(alternative), undefined);
    const addresses = await netlink.listIpv4Addresses(index);
    assert.deepEqual(addresses, [{ address: '10.9.0.1', prefixLength: 24 }]);
    ip(['route', 'add', '192.0.2.0/24', 'via', '10.9.0.2', 'dev', BRIDGE]);
    const route = { device: BRIDGE, gateway: '10.9.0.2' };
    assert.deepEqual(await netlink.findRoute('192.0.2.9'), route);

    await netlink.changeAlternativeName('remove', index, alternative);
    assert.doesNotMatch(ip(['link', 'show', 'dev', BRIDGE]), /altname/);
    await netlink.deleteLink(index);
    assert.equal(await netlink.findLink(BRIDGE), undefined);
  });

  test('says which change of which link failed, and why', async () => {
    const add = (): Promise<void> =>
      withHostLinks(`create the bridge ${BRIDGE}`, (netlink) => netlink.addBridge(BRIDGE, MAC));
    await add();
    await assert.rejects(add(), {
      code: 'NETWORK_SETUP',
      message: `cannot create the bridge ${BRIDGE}: add bridge ${BRIDGE}: file already exists (EEXIST)`,
    });
    await assert.rejects(
      withHostLinks('set up gntnone', (netlink) => netlink.requireLink('gntnone')),
      { message: 'cannot set up gntnone: find link gntnone: no such device (ENODEV)' },
    );
  });

  // The library aborts the process when the buffer of a socket overflows.
  test('survives events of many links while it does not read', async () => {
    await using netlink = new RouteNetlink();
    const each = (line: (link: string) => string): string =>
      Array.from({ length: 100 }, (_, number) => line(`gntv${number}`)).join('\n');
    ip(
      ['-b', '-'],
      each((link) => `link add ${link}a type veth peer name ${link}b`),
    );
    const listed = netlink.listLinks();
    ip(
      ['-b', '-'],
      each((link) => `link set ${link}a up`),
    );
    ip(
      ['-b', '-'],
      each((link) => `link delete ${link}a`),
    );
    await listed;
    assert.equal(await netlink.findLink('gntv0a'), undefined);
    assert.notEqual(await netlink.findLink('lo'), undefined);
  });
}
