import { run } from '#shared/process/run.ts';
import type { HostLink } from './host-links.ts';
import type { NatNames } from './nat-names.ts';
import { isRouter, readForwarding, writeForwarding } from './uplinks.ts';

/*
 * Lent devices forward only for networks of this node, because the host does not forward otherwise.
 * An alternative name marks each in the kernel. The mark survives this daemon, its files and a
 * flush of the rules, and disappears with the device.
 */

/** Lists devices that an earlier look or an earlier daemon has lent. */
export function listLent(links: readonly HostLink[], names: NatNames): readonly string[] {
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
    if (!former.includes(device))
      await run('ip', ['link', 'property', 'add', 'dev', device, 'altname', lentPrefix + device]);
    if (readForwarding(device) === '1') continue;
    if (former.includes(device)) lost.push(device);
    writeForwarding(device, '1');
  }
  return lost;
}

/** Ends the loan. Forwarding stays on if the host became a router in the meantime. */
export async function giveBack(
  devices: readonly string[],
  links: readonly HostLink[],
  names: NatNames,
): Promise<void> {
  for (const link of links.filter(({ name }) => devices.includes(name))) {
    if (!isRouter()) writeForwarding(link.name, '0');
    const mark = markOf(link, names);
    if (mark !== undefined)
      await run('ip', ['link', 'property', 'del', 'dev', link.name, 'altname', mark]);
  }
}

function markOf({ alternatives }: HostLink, { lentPrefix }: NatNames): string | undefined {
  return alternatives.find((name) => name.startsWith(lentPrefix));
}
