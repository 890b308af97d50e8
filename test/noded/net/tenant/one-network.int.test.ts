import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import { bridgeOf, natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import { NatNetworks } from '../../../../noded/net/tenant/nat-networks.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../../../lab/own-network.ts';
import * as lab from './nat-lab.ts';

/** The life of one network with one guest; nat-networks.slow.test.ts has its troubles. */
if (!hasOwnNetwork()) {
  test('a NAT network works in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else test('a NAT network serves its guest, and leaves nothing', serveOneGuest);

async function serveOneGuest(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'gnt-nat-'));
  const dir = join(root, 'run');
  const bridge = bridgeOf(natNamesOf(root), lab.LAN);
  let networks = [lab.LAN];
  using used = new DisposableStack();
  used.defer(() => rmSync(root, { recursive: true }));
  chmodSync(root, 0o755);
  used.use(lab.makeSurroundings(root));
  const empty = lab.picture();
  const nat = new NatNetworks({
    ...{ nodeName: 'node1', root, dir, logger: silentLogger, clock: systemClock },
    ...{ lookIntervalMs: 500, listNics: () => Promise.resolve([]) },
    readPolicy: () => Promise.resolve(lab.OPEN_REACH),
    users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID),
    listNetworks: () => Promise.resolve(networks),
    listMembers: () => Promise.resolve(new Map()),
  });
  used.defer(() => {
    for (const pid of lab.listDnsmasqs()) process.kill(Number(pid), 'SIGKILL');
  });

  for (const [network, range] of [
    ['198.51.100.0/25', /198\.51\.100\.0\/24, which this host reaches through up0/],
    ['192.0.2.0/24', /192\.0\.2\.0\/24, which this host reaches through br9/],
    ['169.254.0.0/24', /169\.254\.0\.0\/16, which is reserved/],
    ['127.1.0.0/16', /127\.0\.0\.0\/8, which is reserved/],
    ['0.1.0.0/16', /0\.0\.0\.0\/8, which is reserved/],
    ['239.1.0.0/16', /224\.0\.0\.0\/3, which is reserved/],
  ] as const)
    await assert.rejects(nat.check({ ...lab.LAN, network }), range);

  await nat.check(lab.LAN);
  await nat.settle(lab.LAN.name);
  // Its own routes do not count.
  await nat.check(lab.LAN);
  const settings = {
    'proc/sys/net/ipv6/conf/B/disable_ipv6': '1',
    'proc/sys/net/ipv4/conf/B/rp_filter': '1',
    'proc/sys/net/ipv4/conf/B/accept_redirects': '0',
    'proc/sys/net/ipv4/conf/B/send_redirects': '0',
    'proc/sys/net/ipv4/conf/B/accept_source_route': '0',
    'proc/sys/net/ipv4/conf/B/route_localnet': '0',
    'proc/sys/net/ipv4/conf/B/proxy_arp': '0',
    'proc/sys/net/ipv4/conf/B/forwarding': '1',
    'sys/class/net/B/bridge/no_linklocal_learn': '1',
    'sys/class/net/B/bridge/group_fwd_mask': '0xfff8',
    'sys/class/net/B/bridge/multicast_snooping': '0',
  };
  for (const [path, value] of Object.entries(settings))
    assert.equal(
      readFileSync(`/${path.replace('/B/', `/${bridge}/`)}`, 'utf8').trim(),
      value,
      path,
    );

  const nic = { name: 'web.example.com', mac: 'aa:00:00:00:00:01', ip: '10.9.0.5' };
  const web = await lab.addGuest(nat, nic);
  const told = lab.askByDhcp(web.namespace, root);
  assert.deepEqual(
    [told?.['ip'], told?.['router'], told?.['dns'], told?.['mask']],
    ['10.9.0.5', '10.9.0.1', '10.9.0.1', '24'],
  );
  const resolve = (name: string): string | null =>
    lab.inside('web', 'busybox', 'nslookup', '-type=a', name, '10.9.0.1');
  assert.match(resolve('web') ?? '', /10\.9\.0\.5/);
  assert.match(resolve('outside.test') ?? '', /198\.51\.100\.1/);
  assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', lab.OUTSIDE), null);
  assert.equal(lab.inside('web', 'busybox', 'ping', '-c1', '-W1', '192.0.2.1'), null);

  lab.removeGuest(web);
  await nat.follow();
  networks = [];
  await nat.settle(lab.LAN.name);
  await nat[Symbol.asyncDispose]();
  assert.equal(lab.picture(), empty);
  assert.equal(existsSync(dir), false);
}
