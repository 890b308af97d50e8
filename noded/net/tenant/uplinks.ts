import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Link, withHostLinks } from '../channel/rtnetlink.ts';
import type { NatNames } from './nat-names.ts';

const ROUTES = '/proc/net/route';
const RTF_UP = 0x1;

export interface Route {
  readonly device: string;
  /** `10.0.0.0/8`; `0.0.0.0/0` is a default route. */
  readonly destination: string;
}

/** Lists IPv4 routes of the main table. */
export function listRoutes(): readonly Route[] {
  return parseRoutes(readFileSync(ROUTES, 'utf8'));
}

/** @param text of /proc/net/route (proc(5)) */
export function parseRoutes(text: string): readonly Route[] {
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , flags = '']) => (Number(`0x${flags}`) & RTF_UP) !== 0)
    .map(([device = '', destination = '', , , , , , mask = '']) => ({
      device,
      destination: `${addressOf(destination)}/${bitsOf(mask)}`,
    }));
}

/** Returns the devices of default routes. */
export function uplinksOf(routes: readonly Route[]): readonly string[] {
  const devices = routes.filter(({ destination }) => destination === '0.0.0.0/0');
  return [...new Set(devices.map(({ device }) => device))].sort();
}

/** Returns whether the host forwards IPv4 on all devices. */
function isRouter(): boolean {
  return readForwarding('all') === '1';
}

/** Returns `1` if a device forwards packets, undefined if it does not exist. */
function readForwarding(device: string): string | undefined {
  const path = forwardingPath(device);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

function writeForwarding(device: string, value: '0' | '1'): void {
  const path = forwardingPath(device);
  if (existsSync(path)) writeFileSync(path, value);
}

function forwardingPath(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`;
}

/** The hex is in the processor's byte order, which is little-endian on x86-64. */
function addressOf(hex: string): string {
  return (hex.match(/../g) ?? [])
    .toReversed()
    .map((byte) => parseInt(byte, 16))
    .join('.');
}

function bitsOf(mask: string): number {
  return parseInt(mask, 16).toString(2).replaceAll('0', '').length;
}

/*
 * Lent devices forward only for networks of this node, because the host does not forward otherwise.
 * An alternative name marks each in the kernel. The mark survives this daemon, its files and a
 * flush of the rules, and disappears with the device.
 */

/** Lists devices that an earlier look or an earlier daemon has lent. */
export function listLent(links: readonly Link[], names: NatNames): readonly string[] {
  return links.filter((link) => markOf(link, names) !== undefined).map(({ name }) => name);
}

/** @returns uplinks that forward for this node's networks only, or will */
export function planLent(uplinks: readonly string[], former: readonly string[]): readonly string[] {
  if (isRouter()) return [];
  return uplinks.filter((device) => former.includes(device) || readForwarding(device) === '0');
}

/** @returns devices that were lent before and had forwarding disabled since */
export async function lend(
  devices: readonly string[],
  former: readonly string[],
  { lentPrefix }: NatNames,
): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const device of devices) {
    if (!former.includes(device)) {
      await withHostLinks(`mark ${device} as forwarding`, async (netlink) => {
        const { index } = await netlink.requireLink(device);
        await netlink.changeAlternativeName('add', index, lentPrefix + device);
      });
    }
    if (readForwarding(device) === '1') continue;
    if (former.includes(device)) lost.push(device);
    writeForwarding(device, '1');
  }
  return lost;
}

/** Ends the loan. Forwarding stays on if the host became a router in the meantime. */
export async function giveBack(
  devices: readonly string[],
  links: readonly Link[],
  names: NatNames,
): Promise<void> {
  for (const link of links.filter(({ name }) => devices.includes(name))) {
    if (!isRouter()) writeForwarding(link.name, '0');
    const mark = markOf(link, names);
    if (mark !== undefined) {
      await withHostLinks(`unmark ${link.name} as forwarding`, (netlink) =>
        netlink.changeAlternativeName('remove', link.index, mark),
      );
    }
  }
}

function markOf({ alternatives }: Link, { lentPrefix }: NatNames): string | undefined {
  return alternatives.find((name) => name.startsWith(lentPrefix));
}
