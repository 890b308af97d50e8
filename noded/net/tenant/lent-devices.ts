import { run } from '#shared/process/run.ts';
import type { HostLink } from './host-links.ts';
import type { NatNames } from './nat-names.ts';
import { isRouter, readForwarding, writeForwarding } from './uplinks.ts';

/*
 * Devices that forward for networks of this node alone, because the host forwarded nothing. The
 * kernel itself remembers which: each has another name besides its own, which survives this daemon,
 * its files and whoever flushes the rules, and goes with the device.
 */

/** Devices that an earlier look, or an earlier daemon, has lent. */
export function listLent(links: readonly HostLink[], names: NatNames): readonly string[] {
  return links.filter((link) => markOf(link, names) !== undefined).map(({ name }) => name);
}

/** @returns those of the uplinks that forward because of us, or are about to */
export function planLent(uplinks: readonly string[], former: readonly string[]): readonly string[] {
  if (isRouter()) return [];
  return uplinks.filter((device) => former.includes(device) || readForwarding(device) === '0');
}

/** @returns those that had lost it, though they were lent before */
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

/** Forwarding stays where somebody else has made the host a router meanwhile. */
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
