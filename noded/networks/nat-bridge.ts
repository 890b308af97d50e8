import { existsSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { run } from '#shared/process/run.ts';

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

function writeSysctl(device: string, key: string, value: string): void {
  const path = `/proc/sys/net/${key.replace('DEVICE', device)}`;
  if (existsSync(dirname(path))) writeFileSync(path, value);
}

export async function addBridge(bridge: string, mac: string): Promise<void> {
  await run('ip', ['link', 'add', bridge, 'address', mac, 'type', 'bridge']);
}

/** @param address `10.9.0.1/24` */
export async function setUpBridge(bridge: string, address: string): Promise<void> {
  for (const [key, value] of Object.entries(BRIDGE_SYSCTLS)) writeSysctl(bridge, key, value);
  await run('ip', ['address', 'replace', address, 'dev', bridge]);
  await run('ip', ['link', 'set', bridge, 'up']);
}

/** A guest's TAP outlives a bridge that somebody deleted. */
export async function joinBridge(bridge: string, device: string): Promise<void> {
  if (!existsSync(`/sys/class/net/${device}`)) return;
  const link = `/sys/class/net/${device}/master`;
  if (existsSync(link) && basename(readlinkSync(link)) === bridge) return;
  try {
    await run('ip', ['link', 'set', device, 'master', bridge]);
  } catch (error) {
    // Its machine may have ended meanwhile.
    if (existsSync(`/sys/class/net/${device}`)) throw error;
  }
}

export async function removeBridge(bridge: string): Promise<void> {
  if (existsSync(`/sys/class/net/${bridge}`)) await run('ip', ['link', 'delete', bridge]);
}
