import { diskRequest, nicRequest, planDisk, planNic } from '#shared/contract/ganeti-create.ts';
import { readNicNetworkChanges } from '#shared/contract/static-network.ts';
import { z } from 'zod';

/** Changes of disks and NICs, by Ganeti's names. The opcodes check the values. */
const which = z.union([z.number().int(), z.string()], { error: 'expected a number or a name' });
const removal = z.object({
  action: z.literal('remove'),
  which,
  values: z.strictObject({}, { error: 'a removal takes no parameters' }),
});

/** Returns the schema of a change of a disk or NIC, in which only a new disk needs a size. */
function partChange<Added extends z.ZodObject, Modified extends z.ZodObject>(
  added: Added,
  modified: Modified,
) {
  return z.preprocess(
    readChange,
    z.discriminatedUnion('action', [
      removal,
      z.object({ action: z.literal('add'), which, values: added }),
      z.object({ action: z.literal('modify'), which, values: modified }),
    ]),
  );
}

/**
 * Reads Ganeti's change: the action, the number or name of the part, and its values. Older clients
 * send the action or the number without the other.
 */
function readChange(change: unknown): unknown {
  if (!Array.isArray(change)) return change;
  const [first, ...rest] = change as readonly unknown[];
  const [at, values] = rest.length > 1 ? rest : [-1, rest[0]];
  return typeof first === 'number'
    ? { action: 'modify', which: first, values: rest[0] }
    : { action: first, which: at, values };
}

export const diskChange = partChange(
  diskRequest,
  z.strictObject({ name: z.string().nullable() }, { error: 'only the name can be modified' }),
);
export const nicChange = partChange(nicRequest, nicRequest);

export function planDiskChange(change: z.output<typeof diskChange>): object {
  const { action, which } = change;
  if (change.action === 'add') return { action, disk: planDisk(change.values) };
  if (change.action === 'remove') return { action, which };
  return { action, which, changes: change.values };
}

/** Returns a change of a NIC, in which `null` unsets a value. */
export function planNicChange(change: z.output<typeof nicChange>): object {
  const { action, which } = change;
  if (change.action === 'remove') return { action, which };
  if (change.action === 'add')
    return { action, at: which === -1 ? undefined : which, nic: planNic(change.values) };
  const { mac, mode, link, bridge, name, network, ...nic } = change.values;
  const { ip, gateway, dns, search, routes, mtu } = nic;
  const changes = {
    mac: mac === 'generate' ? 'auto' : mac,
    mode,
    link: link ?? bridge,
    name,
    networkName: network,
    ...readNicNetworkChanges({ ip, gateway, dns, search, routes, mtu }),
  };
  // A key stands for a change.
  const isGiven = ([, value]: readonly [string, unknown]): boolean => value !== undefined;
  return { action, which, changes: Object.fromEntries(Object.entries(changes).filter(isGiven)) };
}
