import { Document, isAlias, isMap, isScalar, isSeq, stringify, visit, type YAMLMap } from 'yaml';
import {
  addressOf,
  familyOf,
  isOnLink,
  MAX_NETWORK_ITEMS,
  type NicNetwork,
  prefixOf,
} from '#shared/contract/static-network.ts';
import type { ViewNic } from '#shared/contract/view.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';
import type { ServedView } from '../view/served-view.ts';

/**
 * Returns the instance's NICs for the dialects. They always include the channel's NIC, or a stock
 * guest would leave it down. It needs no route overrides: its DHCP answers contain no router and no
 * DNS server.
 */
export function describedNics(view: ServedView): readonly ViewNic[] {
  if (view.nics.some((nic) => nic.communication)) return view.nics;
  return [...view.nics, { mac: view.channel.mac, communication: true }];
}

/**
 * Returns cloud-init's network configuration: the operator's document with the channel's NIC added,
 * or a generated one.
 */
export function networkConfig(view: ServedView): Buffer {
  if (view.networkConfig === null) return Buffer.from(generated(view));
  const given = Buffer.from(view.networkConfig, 'base64');
  return withChannel(given, view) ?? given;
}

/**
 * Version 2 while every NIC uses DHCP, and for a gateway outside the NIC's networks, which version
 * 1 cannot mark as on-link. Version 1 for other static addresses: version 2 has no spelling of a
 * default gateway that all releases of cloud-init and netplan render without an error or a warning
 * (22.4 turns `::/0` into a `/64`; `gateway4` is deprecated).
 */
function generated(view: ServedView): string {
  const nics = describedNics(view);
  const isStatic = nics.some(({ network }) => network !== undefined && hasAddresses(network));
  const document =
    isStatic && !nics.some(needsOnLink)
      ? { version: 1, config: nics.map((nic, index) => physical(nic, `eth${index}`)) }
      : {
          version: 2,
          ethernets: Object.fromEntries(
            nics.map((nic, index) => [
              `eth${index}`,
              { ...ethernet(nic, `eth${index}`), ...addressing(nic) },
            ]),
          ),
        };
  return stringify(document, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
}

function hasAddresses(network: NicNetwork): boolean {
  return network.addresses.length > 0;
}

/**
 * ifupdown's renderer needs names, so the guest's NICs are named in the order of the instance's.
 */
function ethernet({ mac, network }: ViewNic, name: string): object {
  return {
    match: { macaddress: mac },
    'set-name': name,
    ...(network?.mtu && { mtu: network.mtu }),
  };
}

function addressing({ network }: ViewNic): object {
  if (network === undefined || !hasAddresses(network)) return { dhcp4: true };
  const { addresses, gateways, nameservers, search } = network;
  const defaults = gateways.map((via) => ({
    to: familyOf(via) === 'ipv4' ? '0.0.0.0/0' : '::/0',
    via,
  }));
  const routes = [...defaults, ...network.routes].map((route) => ({
    ...route,
    ...(isOnLink(network, route.via) && { 'on-link': true }),
  }));
  const hasServers = nameservers.length + search.length > 0;
  return {
    addresses,
    ...(routes.length > 0 && { routes }),
    ...(hasServers && { nameservers: { addresses: nameservers, search } }),
  };
}

function needsOnLink({ network }: ViewNic): boolean {
  if (network === undefined) return false;
  const { gateways, routes } = network;
  return [...gateways, ...routes.map(({ via }) => via)].some((via) => isOnLink(network, via));
}

function physical({ mac, network }: ViewNic, name: string): object {
  const isStatic = network !== undefined && hasAddresses(network);
  return {
    type: 'physical',
    name,
    mac_address: mac,
    ...(network?.mtu && { mtu: network.mtu }),
    subnets: isStatic ? network.addresses.map((one) => subnet(network, one)) : [{ type: 'dhcp4' }],
  };
}

function subnet(network: NicNetwork, address: string): object {
  const family = familyOf(address);
  const { gateway, routes } = routesOf(network, address);
  const isFirst = network.addresses[0] === address;
  return {
    type: family === 'ipv4' ? 'static' : 'static6',
    address,
    ...(gateway !== undefined && { gateway }),
    ...(routes.length > 0 && { routes: routes.map(openstackRoute) }),
    ...(isFirst && network.nameservers.length > 0 && { dns_nameservers: network.nameservers }),
    ...(isFirst && network.search.length > 0 && { dns_search: network.search }),
  };
}

/** Returns gateway and routes of an address: those of a family belong to its first address. */
function routesOf(
  { addresses, gateways, routes }: NicNetwork,
  address: string,
): { readonly gateway: string | undefined; readonly routes: NicNetwork['routes'] } {
  const family = familyOf(address);
  if (addresses.find((one) => familyOf(one) === family) !== address)
    return { gateway: undefined, routes: [] };
  return {
    gateway: gateways.find((one) => familyOf(one) === family),
    routes: routes.filter(({ to }) => familyOf(to) === family),
  };
}

/** OpenStack and cloud-init's version 1 share this spelling. */
function openstackRoute({ to, via }: NicNetwork['routes'][number]): object {
  return { network: addressOf(to), netmask: netmaskOf(to), gateway: via };
}

/** @returns null when the document is not a known network configuration, or has the NIC already */
function withChannel(given: Buffer, view: ServedView): Buffer | null {
  const text = given.toString('utf8');
  if (text.toLowerCase().includes(view.channel.mac)) return null;
  const read = readYaml(text, { version: '1.1' }, MAX_NETWORK_ITEMS);
  if ('problem' in read) return null;
  const { document } = read;
  // Keep comments and anchors where possible; otherwise resolve the aliases.
  return addChannel(document, view) ?? addChannel(withoutAliases(document), view);
}

function addChannel(document: Document | null, view: ServedView): Buffer | null {
  if (document === null) return null;
  const top = document.has('network') ? ['network'] : [];
  const version: unknown = document.getIn([...top, 'version']);
  if (version !== 2 && version !== 1) return null;
  const isAdded =
    version === 2
      ? addEthernet(document, [...top, 'ethernets'], view)
      : addPhysical(document, top, view);
  return isAdded ? Buffer.from(document.toString({ lineWidth: 0 })) : null;
}

/** @returns null when there are no aliases, or too many values without them */
function withoutAliases(document: Document): Document | null {
  if (document.contents === null || !hasAlias(document)) return null;
  try {
    const value: unknown = document.toJS();
    if (isMoreThan(MAX_NETWORK_ITEMS, value)) return null;
    return new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  } catch {
    return null; // The library takes too many aliases for an attack.
  }
}

function hasAlias(document: Document): boolean {
  let isThere = false;
  visit(document, {
    Alias: () => {
      isThere = true;
      return visit.BREAK;
    },
  });
  return isThere;
}

function isMoreThan(most: number, value: unknown): boolean {
  const open = [value];
  for (let count = 0; open.length > 0; count++) {
    if (count > most || open.length > most) return true;
    const next = open.pop();
    const parts: unknown[] = Object.values(next ?? {});
    if (typeof next === 'object') open.push(...parts);
  }
  return false;
}

function addEthernet(document: Document, path: readonly string[], view: ServedView): boolean {
  const ethernets: unknown = document.getIn(path);
  if (ethernets !== undefined && ethernets !== null && !isMap(ethernets)) return false;
  const channel = { match: { macaddress: view.channel.mac }, dhcp4: true };
  if (isMap(ethernets)) ethernets.set(channelId(ethernets), document.createNode(channel));
  else document.setIn(path, document.createNode({ [CHANNEL_ID]: channel }));
  return true;
}

const CHANNEL_ID = 'gntcom';

/**
 * Returns an ID that sorts before all entries that may match the channel's NIC. netplan names the
 * files of systemd-networkd by ID, and the first file that matches a NIC configures it. `!` sorts
 * before all other characters that netplan accepts.
 */
function channelId(ethernets: YAMLMap): string {
  const others = ethernets.items.flatMap(({ key, value }) =>
    isScalar(key) && mayMatchByPattern(value) ? [String(key.value)] : [],
  );
  const most = Math.max(0, ...others.map((id) => id.length - id.replace(/^!+/, '').length));
  const candidates = [CHANNEL_ID, `0${CHANNEL_ID}`, `${'!'.repeat(most + 1)}${CHANNEL_ID}`];
  const isFirst = (id: string): boolean => others.every((other) => `${id}.` < `${other}.`);
  return candidates.find(isFirst) ?? CHANNEL_ID;
}

/** In an entry with merge keys, only a MAC of its own counts. */
function mayMatchByPattern(entry: unknown): boolean {
  if (!isMap(entry)) return isAlias(entry);
  const match: unknown = entry.get('match');
  if (match !== undefined) return !(isMap(match) && match.has('macaddress'));
  return entry.items.some(({ key }) => isScalar(key) && key.source === '<<');
}

function addPhysical(document: Document, top: readonly string[], view: ServedView): boolean {
  const path = [...top, 'config'];
  const config: unknown = document.getIn(path);
  if (config !== undefined && config !== null && !isSeq(config)) return false;
  const channel = {
    type: 'physical',
    name: freeName(isSeq(config) ? config.items : []),
    mac_address: view.channel.mac,
    subnets: [{ type: 'dhcp4' }],
  };
  if (isSeq(config)) config.add(document.createNode(channel));
  else document.setIn(path, document.createNode([channel]));
  return true;
}

/** cloud-init renames NICs as version 1 documents say, so the name must be free. */
function freeName(entries: readonly unknown[]): string {
  const taken = new Set(entries.map((entry) => (isMap(entry) ? entry.get('name') : undefined)));
  let index = 0;
  while (taken.has(`eth${index}`)) index++;
  return `eth${index}`;
}

/**
 * Returns Debian's `/etc/network/interfaces`, bound to the NICs by MAC, which Nova serves as the
 * content of `network_config`.
 */
export function debianInterfaces(view: ServedView): string {
  const cards = describedNics(view).map(
    (nic, index) => `auto eth${index}\n${stanzas(nic, `eth${index}`).join('')}`,
  );
  return ['auto lo\niface lo inet loopback\n', ...cards].join('\n');
}

function stanzas({ mac, network }: ViewNic, name: string): readonly string[] {
  const first = [`hwaddress ether ${mac}`, ...(network?.mtu ? [`mtu ${network.mtu}`] : [])];
  if (!network || !hasAddresses(network)) return [stanza(name, 'inet dhcp', first)];
  const { addresses, nameservers, search } = network;
  if (nameservers.length > 0) first.push(`dns-nameservers ${nameservers.join(' ')}`);
  if (search.length > 0) first.push(`dns-search ${search.join(' ')}`);
  return addresses.map((address, index) => {
    const { gateway, routes } = routesOf(network, address);
    return stanza(name, `${familyOf(address) === 'ipv4' ? 'inet' : 'inet6'} static`, [
      `address ${address}`,
      ...(index === 0 ? first : []),
      ...(gateway === undefined ? [] : [`gateway ${gateway}`]),
      ...routes.map(
        ({ to, via }) =>
          `post-up ip route add ${to} via ${via} dev ${name}${isOnLink(network, via) ? ' onlink' : ''}`,
      ),
    ]);
  });
}

function stanza(name: string, method: string, lines: readonly string[]): string {
  return [`iface ${name} ${method}`, ...lines.map((line) => `    ${line}`), ''].join('\n');
}

export function networkData(view: ServedView): object {
  const nics = describedNics(view);
  return {
    links: nics.map((nic, index) => ({
      id: `nic${index}`,
      type: 'phy',
      ethernet_mac_address: nic.mac,
      vif_id: nic.uuid ?? `nic${index}`,
      ...(nic.network?.mtu && { mtu: nic.network.mtu }),
    })),
    networks: nics
      .flatMap(({ network }, index) => openstackNetworks(network, `nic${index}`))
      .map((network, index) => ({
        id: `network${index}`,
        network_id: `network${index}`,
        ...network,
      })),
    services: nics.flatMap(({ network }) => (network ? dnsServices(network) : [])),
  };
}

function openstackNetworks(network: NicNetwork | undefined, link: string): readonly object[] {
  if (!network || !hasAddresses(network)) return [{ type: 'ipv4_dhcp', link }];
  return network.addresses.map((address) => {
    const family = familyOf(address);
    const { gateway, routes } = routesOf(network, address);
    const everywhere = family === 'ipv4' ? '0.0.0.0/0' : '::/0';
    return {
      type: family,
      link,
      ip_address: addressOf(address),
      netmask: netmaskOf(address),
      routes: [...(gateway === undefined ? [] : [{ to: everywhere, via: gateway }]), ...routes].map(
        openstackRoute,
      ),
      services: dnsServices(network),
    };
  });
}

function dnsServices({ nameservers }: NicNetwork): readonly object[] {
  return nameservers.map((address) => ({ type: 'dns', address }));
}

function netmaskOf(prefixed: string): string {
  const isV4 = familyOf(prefixed) === 'ipv4';
  const groupBits = isV4 ? 8 : 16;
  return Array.from({ length: isV4 ? 4 : 8 }, (_, group) => {
    const ones = Math.min(groupBits, Math.max(0, prefixOf(prefixed) - group * groupBits));
    const mask = 2 ** groupBits - 2 ** (groupBits - ones);
    return isV4 ? String(mask) : mask.toString(16);
  }).join(isV4 ? '.' : ':');
}
