import { z } from 'zod';
import { nicReach } from './guest-reach.ts';
import { deviceName, macAddress, newTag, nodeName, uuid } from './primitives.ts';
import { subnetOf } from './static-network.ts';

/** Networks of the whole cluster; each is read as a whole for lists. */
export const MAX_NETWORKS = 256;
/** Addresses of one network that somebody else has. */
export const MAX_RESERVED = 1024;
const MAX_TAGS = 100;

/** A label of DNS, which no value of a card's options is mistaken for. */
export const networkName = z
  .string()
  .regex(
    /^(?!(?:none|default|pool|auto)$)[a-z]([a-z0-9-]{0,30}[a-z0-9])?$/,
    'not a network name: use lower-case letters, digits and dashes, such as lan',
  );

/** What takes an address of a pool in place of one that is named. */
export const ANY_ADDRESS = 'pool';

const SMALLEST_PREFIX = 16;
const LARGEST_PREFIX = 30;

/** As Ganeti: an IPv4 network, from /30 to /16. */
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

/** The first three bytes of its cards' MACs; not of a group. */
export const macPrefix = z
  .string()
  .regex(/^[0-9a-f][02468ace](:[0-9a-f]{2}){2}$/, 'expected three bytes such as aa:00:01');

/** How a node reaches a network: by a bridge that it has, or by one that its daemon makes. */
export const networkConnection = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('bridged'), link: deviceName }),
  z.strictObject({ mode: z.literal('nat') }),
]);
export type NetworkConnection = z.infer<typeof networkConnection>;

export const newNetworkTags = z.array(newTag).max(MAX_TAGS);
export const networkTags = z.array(z.string().min(1).max(128)).max(MAX_TAGS);
export const reservedAddresses = z.array(z.ipv4()).max(MAX_RESERVED);

/** What the store keeps of one; the addresses that instances have are claims of theirs. */
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

/** GET /v1/networks. */
export const networkInfo = networkRecord.omit({ schema: true }).extend({
  size: z.number().int(),
  free: z.number().int(),
  /** In the order of the addresses. */
  addresses: z.array(z.object({ ip: z.string(), instance: z.string() })),
});
export type NetworkInfo = z.infer<typeof networkInfo>;

/** Of a card in a network, as the node's own parts are told of it. */
export const networkGuest = z.object({
  /** Its TAP. */
  device: deviceName,
  mac: macAddress,
  ip: z.ipv4(),
  /** Its instance. */
  name: z.string(),
  network: networkName,
  reach: nicReach.default('all'),
});
export type NetworkGuest = z.infer<typeof networkGuest>;
