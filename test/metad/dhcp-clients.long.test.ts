import assert from 'node:assert/strict';
import { afterEach, before, beforeEach, test } from 'node:test';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { DHCP_CLIENTS, runDhcpClient } from './support/dhcp-clients.ts';
import { exampleView } from './support/view-fixture.ts';

/**
 * Current DHCP clients of guests against metad itself. dhcp/recorded-clients.test.ts replays their
 * messages; udhcpc and dhclient are in dhcp.slow.test.ts.
 */
const TREES_TIMEOUT_MS = 1_800_000;
const view = exampleView();
let lab: ChannelLab;
let guest: Guest;

before(
  async () => {
    for (const { tree } of Object.values(DHCP_CLIENTS)) await tree();
  },
  { timeout: TREES_TIMEOUT_MS },
);
beforeEach(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest({ ...view.channel, isUnconfigured: true });
  assert.equal((await lab.put(view)).status, 204);
});
afterEach(async () => {
  await lab[Symbol.asyncDispose]();
});

for (const client of Object.values(DHCP_CLIENTS)) {
  test(`${client.program} gets the address, the route to the service and no default route, at each boot`, async () => {
    for (const found of await runDhcpClient(client, guest.namespace)) {
      assert.match(found, /inet 169\.254\.0\.1\/16/);
      assert.match(found, /^169\.254\.169\.254 dev eth0/m);
      assert.doesNotMatch(found, /^default/m);
    }
  });
}
