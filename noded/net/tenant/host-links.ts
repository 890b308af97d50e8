import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { subnetOf } from '#shared/contract/static-network.ts';
import { run } from '#shared/process/run.ts';

/** What `ip -j link show` prints. */
const ipLinks = z.array(
  z.object({
    ifname: z.string(),
    master: z.string().optional(),
    altnames: z.array(z.string()).default([]),
  }),
);
/** What `ip -j -4 address show` prints; it may be an empty object for what is filtered out. */
const ipAddresses = z.array(
  z.object({
    addr_info: z.array(z.object({ local: z.string(), prefixlen: z.number() })).default([]),
  }),
);

export interface HostLink {
  readonly name: string;
  /** The bridge that it is a port of. */
  readonly master: string | undefined;
  readonly alternatives: readonly string[];
}

/** All of this host, as the kernel has them now. */
export async function listLinks(): Promise<readonly HostLink[]> {
  const { stdout } = await run('ip', ['-j', 'link', 'show']);
  return ipLinks
    .parse(JSON.parse(stdout))
    .map(({ ifname: name, master, altnames: alternatives }) => ({ name, master, alternatives }));
}

/** The first IPv4 address of a device, with its network; undefined where it has none. */
export async function readAddress(
  device: string,
): Promise<{ readonly address: string; readonly network: string } | undefined> {
  const { stdout } = await run('ip', ['-j', '-4', 'address', 'show', 'dev', device]);
  const [found] = ipAddresses.parse(JSON.parse(stdout)).flatMap(({ addr_info: info }) => info);
  if (found === undefined || !isIPv4(found.local)) return undefined;
  return { address: found.local, network: subnetOf(`${found.local}/${found.prefixlen}`) };
}
