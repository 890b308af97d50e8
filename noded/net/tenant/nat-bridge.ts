import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { NetworkGuest } from '#shared/contract/network.ts';
import { subnetOf } from '#shared/contract/static-network.ts';
import { bindPort, closePort } from '../channel/bridge-port.ts';
import { type Link, withHostLinks } from '../channel/rtnetlink.ts';

const BRIDGE_SYSCTLS: Readonly<Record<string, string>> = {
  'ipv6/conf/DEVICE/disable_ipv6': '1',
  'ipv4/conf/DEVICE/rp_filter': '1',
  'ipv4/conf/DEVICE/accept_redirects': '0',
  'ipv4/conf/DEVICE/send_redirects': '0',
  'ipv4/conf/DEVICE/accept_source_route': '0',
  'ipv4/conf/DEVICE/route_localnet': '0',
  'ipv4/conf/DEVICE/proxy_arp': '0',
  'ipv4/conf/DEVICE/forwarding': '1',
};

/**
 * Settings under /sys/class/net/BRIDGE/bridge. Frames to 01:80:c2:00:00:0X skip the bridge's
 * prerouting hook and teach it their source MAC, unless the bridge forwards them: then the rules
 * of the ports drop them. The kernel does not let a bridge forward the first three of these
 * addresses (bits 0 to 2). Without snooping, a guest cannot join groups at the bridge's expense.
 */
const BRIDGE_SETTINGS: Readonly<Record<string, string>> = {
  no_linklocal_learn: '1',
  group_fwd_mask: '0xfff8',
  multicast_snooping: '0',
};
/** A second bound: ports of guests learn nothing. */
const MAX_LEARNED_MACS = 1024;

function writeSysctl(device: string, key: string, value: string): void {
  const path = `/proc/sys/net/${key.replace('DEVICE', device)}`;
  if (existsSync(dirname(path))) writeFileSync(path, value);
}

/** Lists all links of this host. */
export function listHostLinks(): Promise<readonly Link[]> {
  return withHostLinks('list the links of this host', (netlink) => netlink.listLinks());
}

export function addBridge(bridge: string, mac: string): Promise<void> {
  return withHostLinks(`create the bridge ${bridge}`, (netlink) => netlink.addBridge(bridge, mac));
}

/** @param address `10.9.0.1/24` */
export async function setUpBridge(bridge: string, address: string): Promise<void> {
  for (const [key, value] of Object.entries(BRIDGE_SYSCTLS)) writeSysctl(bridge, key, value);
  for (const [key, value] of Object.entries(BRIDGE_SETTINGS))
    writeFileSync(`/sys/class/net/${bridge}/bridge/${key}`, value);
  const [ip = '', prefixLength] = address.split('/');
  await withHostLinks(`set up the bridge ${bridge}`, async (netlink) => {
    const { index } = await netlink.requireLink(bridge);
    await netlink.limitLearning(index, MAX_LEARNED_MACS);
    await netlink.ensureAddress(index, ip, Number(prefixLength));
    await netlink.setLinkUp(index);
  });
}

/** Returns the first IPv4 address of a link with its network, or undefined. */
export async function readIpv4Address({
  name,
  index,
}: Pick<Link, 'name' | 'index'>): Promise<
  { readonly address: string; readonly network: string } | undefined
> {
  const [found] = await withHostLinks(`read the address of ${name}`, (netlink) =>
    netlink.listIpv4Addresses(index),
  );
  return (
    found && {
      address: found.address,
      network: subnetOf(`${found.address}/${found.prefixLength}`),
    }
  );
}

/**
 * Makes the TAPs of guests closed ports of a bridge, also after the bridge was deleted and created
 * again.
 */
export async function joinBridge(
  bridge: string,
  guests: readonly Pick<NetworkGuest, 'device' | 'mac'>[],
): Promise<void> {
  await withHostLinks(`connect guests to the bridge ${bridge}`, async (netlink) => {
    const { index: bridgeIndex } = await netlink.requireLink(bridge);
    for (const { device, mac } of guests) {
      await unlessGone(device, async () => {
        const { index, masterIndex } = await netlink.requireLink(device);
        if (masterIndex !== bridgeIndex) await netlink.enslaveLink(index, bridgeIndex);
        // An entry for the bridge's own MAC would send its port the traffic to the gateway.
        if (mac === readMac(bridge)) closePort(device);
        else await bindPort(netlink, device, mac);
      });
    }
  });
}

function readMac(device: string): string {
  return readFileSync(`/sys/class/net/${device}/address`, 'utf8').trim();
}

/** Closes ports whose guests are unknown. */
export async function closePorts(devices: readonly string[]): Promise<void> {
  for (const device of devices) await unlessGone(device, () => closePort(device));
}

/** A TAP disappears whenever its QEMU process ends. */
async function unlessGone(device: string, change: () => void | Promise<void>): Promise<void> {
  const isThere = (): boolean => existsSync(`/sys/class/net/${device}`);
  if (!isThere()) return;
  try {
    await change();
  } catch (error) {
    if (isThere()) throw error;
  }
}

export function removeBridge(bridge: string): Promise<void> {
  return withHostLinks(`remove the bridge ${bridge}`, async (netlink) => {
    const link = await netlink.findLink(bridge);
    if (link) await netlink.deleteLink(link.index);
  });
}
