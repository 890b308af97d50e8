import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createNatGuests, type GuestNic } from '../../../../noded/net/tenant/nat-guests.ts';
import { formerTapOf, natNamesOf, tapOf } from '../../../../noded/net/tenant/nat-names.ts';

const names = natNamesOf('/');
/** Two MACs whose TAPs had one name in earlier releases. */
const [VICTIM_MAC, COLLIDING_MAC] = ['aa:00:01:00:0c:ec', 'aa:00:01:00:e4:7b'];

const cardOf = (number: number, mac: string): GuestNic => ({
  ...{ uuid: `11111111-1111-4111-8111-00000000000${number}`, mac, ip: `10.9.0.${number}` },
  ...{ name: `i${number}.test`, network: 'lan' },
});
const victim = cardOf(5, VICTIM_MAC);
const attacker = cardOf(6, COLLIDING_MAC);

async function recognize(
  nics: readonly GuestNic[],
  devices: readonly string[],
): Promise<Record<string, string>> {
  const guests = createNatGuests({
    ...{ names, logger: silentLogger, listNics: () => Promise.resolve(nics) },
  });
  const links = devices.map((name) => ({ name }));
  const found = await guests.settle(links, undefined);
  return Object.fromEntries(found.map(({ device, ip }) => [device, ip]));
}

test('two NICs whose MACs had the same TAP name in earlier releases have two TAPs', async () => {
  assert.equal(formerTapOf(names, VICTIM_MAC), formerTapOf(names, COLLIDING_MAC));
  const [own, other] = [tapOf(names, victim.uuid), tapOf(names, attacker.uuid)];
  const found = await recognize([attacker, victim], [own, other]);
  assert.deepEqual(found, { [own]: victim.ip, [other]: attacker.ip });
});

test('a TAP that an earlier release named by the MAC keeps its guest', async () => {
  const device = formerTapOf(names, VICTIM_MAC);
  assert.deepEqual(await recognize([victim], [device]), { [device]: victim.ip });
});

test("a NIC with its own TAP does not get another NIC's TAP of an earlier release", async () => {
  const [former, own] = [formerTapOf(names, VICTIM_MAC), tapOf(names, attacker.uuid)];
  const found = await recognize([attacker, victim], [former, own]);
  assert.deepEqual(found, { [former]: victim.ip, [own]: attacker.ip });
});
