import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRouteTable } from '../../../metad/ganeti/route-table.ts';

const TEXT = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
br0\t0000FEA9\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
gnt.com.3\t0700FEA9\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
gw0\t0800FEA9\t0101A8C0\t0007\t0\t0\t0\tFFFFFFFF\t0\t0\t0
`;

test('the most specific route without a gateway names the device', () => {
  const routes = parseRouteTable(TEXT);
  assert.equal(routes.deviceOf('169.254.0.7'), 'gnt.com.3');
  assert.equal(routes.deviceOf('169.254.0.9'), 'br0');
  assert.equal(routes.deviceOf('169.254.0.8'), 'br0');
});

test('an address that only the default route matches has no device', () => {
  assert.equal(parseRouteTable(TEXT).deviceOf('10.0.0.1'), null);
  assert.equal(parseRouteTable('').deviceOf('10.0.0.1'), null);
});
