import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { RouteNetlink } from './rtnetlink.ts';

/**
 * Closes a bridge port: the bridge learns no MAC from its frames and sends it no frame to an
 * unknown MAC. Removes entries that the bridge already learned at this port. Idempotent. Does
 * nothing for a device that is not a port.
 */
export function closePort(device: string): void {
  const port = `/sys/class/net/${device}/brport`;
  if (!existsSync(port)) return;
  writeFileSync(`${port}/unicast_flood`, '0');
  if (readFileSync(`${port}/learning`, 'utf8').trim() === '0') return;
  writeFileSync(`${port}/learning`, '0');
  writeFileSync(`${port}/flush`, '1');
}

/** Closes a port and forwards frames to one MAC through it. */
export async function bindPort(netlink: RouteNetlink, device: string, mac: string): Promise<void> {
  closePort(device);
  const link = `/sys/class/net/${device}`;
  await netlink.replaceForwarding(Number(readFileSync(`${link}/ifindex`, 'utf8')), mac);
}
