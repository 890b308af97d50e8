import { readNicNetwork, readNicNetworkChanges } from '#shared/contract/static-network.ts';
import { MIB } from '#shared/units/bytes.ts';
import { readSizeMiB } from '#shared/units/parse-size.ts';
import { z } from 'zod';

/** Disks and NICs in requests, by Ganeti's names. The opcodes check the values. */
/** MiB, or text with a unit: Ganeti takes both. */
export const size = z
  .union([z.int(), z.string()])
  .transform((given) => readSizeMiB(String(given)))
  .refine((sizeMiB) => sizeMiB !== undefined, 'expected MiB or a size such as 10G');

export const nicRequest = z.strictObject({
  mac: z.string().optional(),
  mode: z.string().optional(),
  link: z.string().optional(),
  vlan: z.literal(['', null], { error: 'VLANs are not supported' }).optional(),
  /** Ganeti's older name for the link of a bridged NIC. */
  bridge: z.string().optional(),
  name: z.string().nullish(),
  ip: z.string().nullish(),
  gateway: z.string().optional(),
  dns: z.string().optional(),
  search: z.string().optional(),
  routes: z.string().optional(),
  mtu: z.union([z.number(), z.string()]).optional(),
  /** The name of a network, as in Ganeti. */
  network: z.string().nullish(),
});
export const diskRequest = z.strictObject({
  /** MiB. */
  size,
  name: z.string().nullish(),
  mode: z.literal('rw').optional(),
});

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

type Disk = z.output<typeof diskRequest>;
type Nic = z.output<typeof nicRequest>;

export function planDisk({ size: sizeMiB, name }: Disk): object {
  return { sizeBytes: sizeMiB * MIB, name: name ?? undefined };
}

export function planNic({ mac, mode, link, bridge, name, network, ...nic }: Nic): object {
  const { ip, gateway, dns, search, routes, mtu } = nic;
  return {
    mac: mac === 'generate' ? 'auto' : mac,
    mode,
    link: link ?? bridge,
    name: name ?? undefined,
    networkName: network ?? undefined,
    ...readNicNetwork({ ip: ip ?? undefined, gateway, dns, search, routes, mtu }),
  };
}

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
