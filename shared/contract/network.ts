import { z } from 'zod';
import { nicReach } from './guest-reach.ts';
import { deviceName, macAddress, newTag, nodeName, uuid } from './primitives.ts';
import { subnetOf } from './static-network.ts';

/** Networks of the cluster. Lists read them completely. */
export const MAX_NETWORKS = 256;
/** Reserved addresses of one network. */
export const MAX_RESERVED = 1024;
const MAX_TAGS = 100;

/** A DNS label that differs from all values of NIC options. */
export const networkName = z
  .string()
  .regex(
    /^(?!(?:none|default|pool|auto)$)[a-z]([a-z0-9-]{0,30}[a-z0-9])?$/,
    'not a network name: use lower-case letters, digits and dashes, such as lan',
  );

/** Requests any free address of the network. */
export const ANY_ADDRESS = 'pool';

const SMALLEST_PREFIX = 16;
const LARGEST_PREFIX = 30;

/** An IPv4 network from /30 to /16, as in Ganeti. */
export const networkRange = z
  .string()
  .refine((text) => z.cidrv4().safeParse(text).success, {
    error: 'expected an IPv4 network such as 10.9.0.0/24 (IPv6 networks are not supported)',
    abort: true,
  })
  .refine((text) => subnetOf(text) === text, {
    error: (issue) =>
      `an address within a network, not a network: write ${subnetOf(String(issue.input))}`,
    abort: true,
  })
  .refine((text) => prefixIn(text), {
    error: `the prefix length must be between /${SMALLEST_PREFIX} and /${LARGEST_PREFIX}`,
  });

function prefixIn(text: string): boolean {
  const prefix = Number(text.split('/')[1]);
  return prefix >= SMALLEST_PREFIX && prefix <= LARGEST_PREFIX;
}

/** The first three bytes of the NICs' MACs, without the multicast bit. */
export const macPrefix = z
  .string()
  .regex(/^[0-9a-f][02468ace](:[0-9a-f]{2}){2}$/, 'expected three bytes such as aa:00:01');

/** How a node reaches a network: by an existing bridge, or by a bridge that its daemon creates. */
export const networkConnection = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('bridged'), link: deviceName }),
  z.strictObject({ mode: z.literal('nat') }),
]);
export type NetworkConnection = z.infer<typeof networkConnection>;

export const newNetworkTags = z.array(newTag).max(MAX_TAGS);
export const networkTags = z.array(z.string().min(1).max(128)).max(MAX_TAGS);
export const reservedAddresses = z.array(z.ipv4()).max(MAX_RESERVED);

/** A network in the store. Addresses of instances are separate claims. */
export const networkRecord = z.object({
  schema: z.literal(1),
  name: networkName,
  uuid,
  network: networkRange,
  gateway: z.ipv4().nullable(),
  macPrefix: macPrefix.nullable(),
  /** Addresses that no instance gets. */
  reserved: reservedAddresses,
  tags: networkTags,
  /** By node, all of one mode. */
  connections: z.record(nodeName, networkConnection),
});
export type NetworkRecord = z.infer<typeof networkRecord>;

export const networkInfo = networkRecord.omit({ schema: true }).extend({
  size: z.number().int(),
  free: z.number().int(),
  /** Ordered by address. */
  addresses: z.array(z.object({ ip: z.string(), instance: z.string() })),
});
export type NetworkInfo = z.infer<typeof networkInfo>;

/** A NIC in a network. */
export const networkGuest = z.object({
  /** TAP device. */
  device: deviceName,
  mac: macAddress,
  ip: z.ipv4(),
  /** Name of the instance. */
  name: z.string(),
  network: networkName,
  reach: nicReach.default('all'),
});
export type NetworkGuest = z.infer<typeof networkGuest>;
