import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { AppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { METADATA_NETWORKS } from '../../host/metadata-networks.ts';
import { readResolvers } from '../channel/user-nic-firewall.ts';
import { overlap } from '../../records/address-pool.ts';

/** This host, loopback, multicast and reserved addresses. */
const SPECIAL = ['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3'];
const RESOLVER_FILE = '/etc/resolv.conf';
/** VPNs replace the default route by two routes with prefix length 1. */
const SHORTEST_PREFIX = 2;

/** Output of `ip -j route`. A multipath route has no device of its own. */
const ipRoutes = z.array(
  z.object({ dst: z.string(), dev: z.string().default('other ways'), type: z.string().optional() }),
);

/**
 * Refuses a range that this host already uses: own addresses, destinations of routes in any table,
 * resolvers.
 * @param own devices whose routes are the network's
 * @throws AppError VALIDATION, CONFLICT
 */
export async function requireUnused(network: string, own: readonly string[]): Promise<void> {
  const closed = METADATA_NETWORKS.filter((range) => isIPv4(range.split('/', 1)[0] ?? ''));
  const special = [...SPECIAL, ...closed].find((range) => overlap(range, network));
  if (special !== undefined) {
    throw new AppError('VALIDATION', `${network} overlaps with ${special}, which is reserved`, {
      details: { range: special },
      hint: 'Use a private network, such as 10.9.0.0/24.',
    });
  }
  for (const { destination, device } of await listRoutesInto(network))
    if (!own.includes(device))
      throw inUse(network, destination, `which this host reaches through ${device}`);
  for (const resolver of readResolvers(RESOLVER_FILE).filter(isIPv4))
    if (overlap(`${resolver}/32`, network))
      throw inUse(network, resolver, `which this host uses for name resolution (${RESOLVER_FILE})`);
}

interface RouteInto {
  readonly destination: string;
  readonly device: string;
}

/**
 * Looks in all tables: the host's own addresses are routes of the table `local`. The library for
 * netlink would decode all routes at once: 200,000 stop the daemon for 1.8 s; `ip` takes 0.4 s.
 */
async function listRoutesInto(network: string): Promise<readonly RouteInto[]> {
  const listed = await Promise.all(
    ['match', 'root'].map((which) =>
      run('ip', ['-j', '-4', 'route', 'show', 'table', 'all', 'to', which, network]),
    ),
  );
  return listed
    .flatMap(({ stdout }) => ipRoutes.parse(JSON.parse(stdout === '' ? '[]' : stdout)))
    .filter(({ dst, type }) => dst !== 'default' && type !== 'throw')
    .map(({ dst, dev }) => ({ destination: dst.includes('/') ? dst : `${dst}/32`, device: dev }))
    .filter(({ destination }) => Number(destination.split('/')[1]) >= SHORTEST_PREFIX);
}

function inUse(network: string, range: string, why: string): AppError {
  return new AppError('CONFLICT', `${network} overlaps with ${range}, ${why}`, {
    details: { range },
    hint: 'Create a network with other addresses.',
  });
}
