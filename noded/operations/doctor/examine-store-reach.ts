import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { type ReachPolicy, reachPolicyOf } from '#shared/contract/guest-reach.ts';
import { depthOf } from '../../content/downloads/transfer/address-policy.ts';
import { listOpenGuests } from '../../instances/machines/nics-of-machines.ts';
import { type Check, ok, warning } from './check.ts';

interface StoreReachFacts {
  /** The store's URL without user and password, or another description. */
  readonly description: string;
  readonly resolve: (host: string) => Promise<readonly string[]>;
  readonly readPolicy: () => Promise<ReachPolicy>;
  /** Names of instances that run here and reach private networks through this node. */
  readonly listOpenGuests: () => Promise<readonly string[]>;
}

const CHECK = 'store-reach';
const MAX_NAMES = 5;

export const checkStoreReach: Check = ({ config, records }) =>
  examineStoreReach({
    description: records.storeDescription,
    resolve: async (host) => (await lookup(host, { all: true })).map((one) => one.address),
    readPolicy: async () => reachPolicyOf(await records.clusters.load()),
    listOpenGuests: () => listOpenGuests(config.paths.vmDir, records.instances),
  });

/** Examines whether guests of this node reach the cluster's store. */
export async function examineStoreReach(facts: StoreReachFacts): Promise<readonly DoctorFinding[]> {
  const hosts = parseHosts(facts.description);
  if (hosts.length === 0) return [];
  try {
    const found = await Promise.all(hosts.map(facts.resolve));
    return [await judge(found.flat(), facts)];
  } catch {
    // A store that is unavailable, or has no address, is a finding of its own.
    return [];
  }
}

async function judge(addresses: readonly string[], facts: StoreReachFacts): Promise<DoctorFinding> {
  const { description } = facts;
  const isPublic = addresses.find((address) => depthOf(address) === 'public');
  if (isPublic !== undefined) {
    return warning(
      CHECK,
      `the store ${description} has the public address ${isPublic}, which every guest reaches`,
      'Give the store an address that only the nodes of the cluster reach',
    );
  }
  const inner = addresses.filter((address) => depthOf(address) === 'private');
  const { confinesAll, networks } = await facts.readPolicy();
  const named = inner.find((address) => isIn(networks, address));
  if (named !== undefined) {
    return warning(
      CHECK,
      `every guest may reach the store ${description}: ${named} is in a guest network`,
      'gnt-cluster modify --guest-networks none',
    );
  }
  const open = confinesAll || inner.length === 0 ? [] : await facts.listOpenGuests();
  if (open.length === 0) return ok(CHECK, 'no guest here reaches the store');
  const names = open.slice(0, MAX_NAMES).join(', ');
  const more = open.length > MAX_NAMES ? ` and ${open.length - MAX_NAMES} more` : '';
  return warning(
    CHECK,
    `guests reach the store ${description} through this node: ${names}${more}`,
    'gnt-cluster modify --confine-guests yes',
  );
}

function parseHosts(description: string): readonly string[] {
  const [, hosts = ''] = /^(?:rediss?|sentinel):\/\/([^/?]+)/.exec(description) ?? [];
  return hosts.split(',').flatMap((one) => {
    const host = /^\[(.+)\]/.exec(one)?.[1] ?? one.replace(/:\d+$/, '');
    return host === '' ? [] : [host];
  });
}

function isIn(networks: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [start = '', bits] = network.split('/');
    const family = isIPv6(start) ? 'ipv6' : 'ipv4';
    list.addSubnet(
      start,
      bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits),
      family,
    );
  }
  return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
