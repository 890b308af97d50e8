import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { subnetOf } from '#shared/contract/static-network.ts';
import { run } from '#shared/process/run.ts';

/** Output of `ip -j link show`. */
const ipLinks = z.array(
  z.object({
    ifname: z.string(),
    master: z.string().optional(),
    altnames: z.array(z.string()).default([]),
  }),
);
/** Output of `ip -j -4 address show`, which has empty objects for filtered devices. */
const ipAddresses = z.array(
  z.object({
    addr_info: z.array(z.object({ local: z.string(), prefixlen: z.number() })).default([]),
  }),
);

export interface HostLink {
  readonly name: string;
  /** Bridge that the link is a port of. */
  readonly master: string | undefined;
  readonly alternatives: readonly string[];
}

/** Lists all links of this host. */
export async function listLinks(): Promise<readonly HostLink[]> {
  const { stdout } = await run('ip', ['-j', 'link', 'show']);
  return ipLinks
    .parse(JSON.parse(stdout))
    .map(({ ifname: name, master, altnames: alternatives }) => ({ name, master, alternatives }));
}

/** Returns the first IPv4 address of a device with its network, or undefined. */
export async function readAddress(
  device: string,
): Promise<{ readonly address: string; readonly network: string } | undefined> {
  const { stdout } = await run('ip', ['-j', '-4', 'address', 'show', 'dev', device]);
  const [found] = ipAddresses.parse(JSON.parse(stdout)).flatMap(({ addr_info: info }) => info);
  if (found === undefined || !isIPv4(found.local)) return undefined;
  return { address: found.local, network: subnetOf(`${found.local}/${found.prefixlen}`) };
}
