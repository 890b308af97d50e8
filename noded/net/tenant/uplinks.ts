import { existsSync, readFileSync, writeFileSync } from 'node:fs';

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
export function isRouter(): boolean {
  return readForwarding('all') === '1';
}

/** Returns `1` if a device forwards packets, undefined if it does not exist. */
export function readForwarding(device: string): string | undefined {
  const path = forwardingPath(device);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

export function writeForwarding(device: string, value: '0' | '1'): void {
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
