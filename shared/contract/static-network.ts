import { BlockList, isIPv4 } from 'node:net';
import { z } from 'zod';

const ipAddress = z.union([z.ipv4(), z.ipv6()], { error: 'expected an IPv4 or IPv6 address' });
const prefixed = z.union([z.cidrv4(), z.cidrv6()], { error: 'expected ADDRESS/PREFIX' });
const searchDomain = z
  .string()
  .max(253)
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/, 'expected a domain name');

/**
 * Lines and list items of an operator's network configuration to which the channel is added.
 * Parsing blocks the daemon. A few NICs need some hundred.
 */
export const MAX_NETWORK_ITEMS = 2000;

const fields = {
  /** `ADDRESS/PREFIX`, both families. */
  addresses: z.array(prefixed).max(8),
  /** Default gateway, at most one of each family. */
  gateways: z.array(ipAddress).max(2),
  nameservers: z.array(ipAddress).max(8),
  search: z.array(searchDomain).max(8),
  routes: z.array(z.strictObject({ to: prefixed, via: ipAddress })).max(32),
  /** In bytes. */
  mtu: z.number().int().min(576).max(65_535).nullable(),
} as const;

/** Changes of some fields. The merged configuration is validated later. */
export const nicNetworkChanges = z.strictObject(fields).partial();

/**
 * Static configuration of a NIC in the guest. Without addresses the NIC uses DHCP and accepts only
 * `mtu`.
 */
export const nicNetwork = z
  .strictObject({
    addresses: fields.addresses.default([]),
    gateways: fields.gateways.default([]),
    nameservers: fields.nameservers.default([]),
    search: fields.search.default([]),
    routes: fields.routes.default([]),
    mtu: fields.mtu.default(null),
  })
  .check((context) => {
    for (const message of faultsOf(context.value)) {
      context.issues.push({ code: 'custom', message, input: context.value });
    }
  });
export type NicNetwork = z.infer<typeof nicNetwork>;

function faultsOf(network: NicNetwork): readonly string[] {
  const { addresses, gateways, nameservers, search, routes } = network;
  if (addresses.length === 0) {
    const isAlone = [gateways, nameservers, search, routes].every((list) => list.length === 0);
    return isAlone ? [] : ['gateway, dns, search and routes need ip=ADDRESS/PREFIX'];
  }
  const via = [...gateways, ...routes.map((route) => route.via)];
  return [
    ...addresses
      .filter((address) => isUnusable(addressOf(address)))
      .map((address) => `${address} cannot be the address of a NIC`),
    ...via
      .filter((gateway) => !isReachable(network, gateway))
      .map(
        (gateway) =>
          `gateway ${gateway} is not in ${addresses.join(', ')}: give the address with ${familyOf(gateway) === 'ipv4' ? '/32' : '/128'} for a gateway on the link outside of its network`,
      ),
    ...routes
      .filter(({ to, via }) => familyOf(to) !== familyOf(via))
      .map(({ to, via }) => `route ${to} and its gateway ${via} are of different address families`),
    ...(['ipv4', 'ipv6'] as const)
      .filter((family) => gateways.filter((one) => familyOf(one) === family).length > 1)
      .map((family) => `more than one default gateway for ${family}`),
  ];
}

/**
 * Tells whether a gateway is outside all networks of a NIC but on its link, so that its route needs
 * the on-link flag. A link-local IPv6 gateway does not need it.
 */
export function isOnLink(network: Pick<NicNetwork, 'addresses'>, gateway: string): boolean {
  const isInside = addressList(network.addresses).check(gateway, familyOf(gateway));
  return !isInside && !isLinkLocal(gateway);
}

function isReachable(network: Pick<NicNetwork, 'addresses'>, gateway: string): boolean {
  const family = familyOf(gateway);
  const own = network.addresses.filter((address) => familyOf(address) === family);
  if (isLinkLocal(gateway)) return own.length > 0;
  if (!isOnLink(network, gateway)) return true;
  const hostBits = family === 'ipv4' ? 32 : 128;
  return own.some((address) => prefixOf(address) === hostBits) && !isUnusable(gateway);
}

function isLinkLocal(gateway: string): boolean {
  return familyOf(gateway) === 'ipv6' && LINK_LOCAL.check(gateway, 'ipv6');
}

const LINK_LOCAL = addressList(['fe80::/10']);

/** Link-local IPv4 belongs to the channel. The others are not unicast addresses. */
const NO_CARDS_ADDRESS = addressList([
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3'],
  ...['::/128', '::1/128', 'fe80::/10', 'ff00::/8'],
]);

function isUnusable(address: string): boolean {
  return NO_CARDS_ADDRESS.check(address, familyOf(address));
}

function addressList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    list.addSubnet(addressOf(network), prefixOf(network), familyOf(network));
  }
  return list;
}

/** @param text an address, with or without `/PREFIX` */
export function familyOf(text: string): 'ipv4' | 'ipv6' {
  return isIPv4(addressOf(text)) ? 'ipv4' : 'ipv6';
}

export function addressOf(prefixedAddress: string): string {
  return prefixedAddress.split('/', 1)[0] ?? '';
}

/** @returns the length of the prefix in bits */
export function prefixOf(prefixedAddress: string): number {
  return Number(prefixedAddress.split('/')[1]);
}

/** @returns `10.0.0.0/24` for `10.0.0.5/24`; IPv4 only */
export function subnetOf(address: string): string {
  const prefix = prefixOf(address);
  const groups = addressOf(address)
    .split('.')
    .map((group, index) => {
      const hostBits = Math.min(8, Math.max(0, (index + 1) * 8 - prefix));
      return Number(group) - (Number(group) % 2 ** hostBits);
    });
  return `${groups.join('.')}/${prefix}`;
}

/** Keys of Ganeti's `--net` and RAPI's NICs. List items are separated by `,` or `;`. */
export interface NicNetworkTexts {
  readonly ip?: string | undefined;
  readonly gateway?: string | undefined;
  readonly dns?: string | undefined;
  readonly search?: string | undefined;
  /** `DESTINATION/PREFIX@GATEWAY`. */
  readonly routes?: string | undefined;
  readonly mtu?: string | number | undefined;
}

/**
 * Parses the keys of a NIC. {@link nicNetwork} validates the values.
 * @returns `ip`: the first address without its prefix. An address without a prefix is metadata
 * only, as in Ganeti: the NIC uses DHCP.
 */
export function readNicNetwork(texts: NicNetworkTexts): {
  readonly ip?: string | undefined;
  readonly network?: z.input<typeof nicNetwork>;
} {
  const { gateway, dns, search, routes, mtu } = texts;
  const addresses = listOf(texts.ip);
  const hasPrefix = addresses.some((address) => address.includes('/'));
  const isPlain = [gateway, dns, search, routes, mtu].every((text) => text === undefined);
  if (isPlain && !hasPrefix) return { ip: texts.ip };
  return {
    ip: addresses[0] === undefined ? undefined : addressOf(addresses[0]),
    network: {
      addresses,
      gateways: listOf(gateway),
      nameservers: listOf(dns),
      search: listOf(search),
      routes: listOf(routes).map(readRoute),
      mtu: mtu === undefined ? null : Number(mtu),
    },
  };
}

/**
 * Parses changes of an existing NIC. Absent keys stay; `null` unsets a value.
 * @returns `ip` as {@link readNicNetwork}, `null` to unset it
 */
export function readNicNetworkChanges(texts: {
  readonly [Word in keyof NicNetworkTexts]?: string | number | null | undefined;
}): {
  readonly ip?: string | null;
  readonly network?: z.input<typeof nicNetworkChanges>;
} {
  const { ip, gateway, dns, search, routes, mtu } = texts;
  const list = (text: string | number | null): string[] => listOf(String(text ?? ''));
  const addresses = list(ip ?? null);
  const hasPrefix = addresses.some((address) => address.includes('/'));
  const network = {
    ...(ip !== undefined && { addresses: hasPrefix ? addresses : [] }),
    ...(gateway !== undefined && { gateways: list(gateway) }),
    ...(dns !== undefined && { nameservers: list(dns) }),
    ...(search !== undefined && { search: list(search) }),
    ...(routes !== undefined && { routes: list(routes).map(readRoute) }),
    ...(mtu !== undefined && { mtu: mtu === null ? null : Number(mtu) }),
  };
  const [first] = addresses;
  return {
    ...(ip !== undefined && { ip: first === undefined ? null : addressOf(first) }),
    ...(Object.keys(network).length > 0 && { network }),
  };
}

function readRoute(route: string): { readonly to: string; readonly via: string } {
  const [to = '', via = ''] = route.split('@');
  return { to, via };
}

function listOf(text: string | undefined): string[] {
  if (text === undefined) return [];
  return text
    .split(/[,;]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
