import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openTap } from '#shared/sys/network-sockets.ts';
import type { ChannelTap } from './channel-network.ts';
import { explainTunError } from './channel-network.ts';
import { bindPort } from './bridge-port.ts';
import { type RouteNetlink, withHostLinks } from './rtnetlink.ts';

const LINK_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;

/**
 * Creates a TAP in the host's namespace as a port of an existing bridge, and sets it up. The kernel
 * removes the TAP with its last descriptor.
 * @throws AppError HOST_PREREQUISITE when `link` is not a bridge of this host, NETWORK_SETUP
 */
export async function openBridgedTap(options: {
  readonly link: string;
  /** Name of the TAP. Random by default. */
  readonly device?: string;
  /** The only MAC behind the port. By default the bridge learns the MACs. */
  readonly onlyMac?: string;
}): Promise<ChannelTap> {
  const { link, device = `gnt${randomBytes(5).toString('hex')}`, onlyMac } = options;
  assertBridge(link);
  let fd: number;
  try {
    fd = openTap(device);
  } catch (error) {
    throw explainTunError(error);
  }
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeFd(fd);
    isOpen = false;
  };
  try {
    await withHostLinks(`connect ${device} to ${link}`, (netlink) =>
      connect(netlink, device, link, onlyMac),
    );
    return { device, fd, close };
  } catch (error) {
    close();
    throw error;
  }
}

async function connect(
  netlink: RouteNetlink,
  device: string,
  bridge: string,
  onlyMac: string | undefined,
): Promise<void> {
  const links = await netlink.listLinks();
  const tap = links.find((link) => link.name === device);
  const master = links.find((link) => link.name === bridge);
  if (!tap || !master) throw new Error('the bridge disappeared');
  // The host itself must not speak on the guest's port.
  const disable = `/proc/sys/net/ipv6/conf/${device}/disable_ipv6`;
  if (existsSync(disable)) writeFileSync(disable, '1');
  // A bridge takes the lowest MAC of its ports. The prefix fe: keeps it constant when guests come.
  const mac = `fe:${randomBytes(5)
    .toString('hex')
    .replaceAll(/(..)(?=.)/g, '$1:')}`;
  await netlink.enslaveLink(tap.index, master.index, mac);
  if (onlyMac !== undefined) await bindPort(netlink, device, onlyMac);
  await netlink.setLinkUp(tap.index);
}

/** @throws AppError HOST_PREREQUISITE */
export function assertBridge(link: string): void {
  if (LINK_PATTERN.test(link) && existsSync(`/sys/class/net/${link}/bridge`)) return;
  throw new AppError('HOST_PREREQUISITE', `this host has no bridge named ${JSON.stringify(link)}`, {
    hint: `Create it (ip link add ${LINK_PATTERN.test(link) ? link : 'br0'} type bridge), or use another link=`,
  });
}
