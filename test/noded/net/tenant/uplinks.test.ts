import assert from 'node:assert/strict';
import { test } from 'node:test';
import { natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import { listLent, parseRoutes, uplinksOf } from '../../../../noded/net/tenant/uplinks.ts';

/** As /proc/net/route has them: little-endian hex. */
const TABLE = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth1\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t00000000\t010200C0\t0003\t0\t0\t50\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth2\t0000000A\t00000000\t0200\t0\t0\t0\t000000FF\t0\t0\t0
tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
`;

test('routes are those of the kernel that are up, with destinations in CIDR notation', () => {
  assert.deepEqual(
    parseRoutes(TABLE).map(({ device, destination }) => `${device} ${destination}`),
    ['eth1 0.0.0.0/0', 'eth0 0.0.0.0/0', 'eth0 192.0.2.0/24', 'tun0 10.0.0.0/8', 'tun0 0.0.0.0/1'],
  );
});

test('uplinks are the devices of default routes, once and in order', () => {
  const routes = parseRoutes(TABLE);
  assert.deepEqual(uplinksOf([...routes, ...routes]), ['eth0', 'eth1']);
  assert.deepEqual(uplinksOf([]), []);
});

test('a device is lent if it has the mark of this node, not of another', () => {
  const [own, other] = [natNamesOf('/'), natNamesOf('/other')];
  const links = [
    { name: 'eth0', alternatives: ['enp1s0', `${own.lentPrefix}eth0`] },
    { name: 'eth1', alternatives: [`${other.lentPrefix}eth1`] },
    { name: 'eth2', alternatives: [] },
  ].map((link, index) => ({ ...link, index, isUp: true, masterIndex: 0 }));
  assert.deepEqual(listLent(links, own), ['eth0']);
});
