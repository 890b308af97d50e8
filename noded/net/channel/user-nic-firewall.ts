import { readFileSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { every } from '#shared/clock/every.ts';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import type { MachineUsers } from '../../host/machine-users.ts';
import { METADATA_NETWORKS } from '../../host/metadata-networks.ts';
import { translatedNetworks } from '../../host/translated-networks.ts';
import { applyNftCommands } from './nft.ts';
import { planPrivateChain } from './reach-rules.ts';

/** A reloaded host firewall begins with `flush ruleset`, which removes this table too. */
const LOOK_INTERVAL_MS = 10_000;
/** Limits the delay of an instance start while the store hangs. */
const POLICY_TIMEOUT_MS = 2_000;
const OWN_NAMESPACE = '/proc/self/ns/net';
const RESOLVER_FILE = '/etc/resolv.conf';
/** Multicast, and broadcast to a link: listeners on this host receive these packets too. */
const GROUPS: readonly string[] = ['224.0.0.0/4', '255.255.255.255/32', 'ff00::/8'];
/** More than a resolver library reads. */
const MAX_RESOLVERS = 8;
const DNS_PORT = 53;
const TABLE_PATTERN = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** In force until the cluster's policy is known. */
const PUBLIC_ONLY: ReachPolicy = { confinesAll: true, networks: [] };

interface WallReach extends ReachPolicy {
  /** Instances may reach this host. */
  readonly isHostOpen: boolean;
  /** User ids of instances that may reach private networks. */
  readonly open: readonly number[];
}

/**
 * Keeps instances with a user-mode NIC from the host's addresses and its cloud's metadata service.
 * QEMU sends the packets of such a NIC from the host's sockets. The rules match the process's user,
 * so they hold from the guest's first instruction.
 */
export interface UserNicFirewall extends AsyncDisposable {
  /**
   * Resolves when the rules are in place. After a failure they are retried until lowerFor.
   * @throws AppError NETWORK_SETUP, HOST_PREREQUISITE
   */
  raiseFor(machine: string): Promise<void>;
  /**
   * Lets an instance reach private networks. Never rejects: after a failure the instance reaches
   * only public addresses until a retry succeeds.
   * @param uid user of its QEMU process
   */
  openFor(machine: string, uid: number): Promise<void>;
  /** Removes the rules with the last instance that needs them. Never rejects. */
  lowerFor(machine: string): Promise<void>;
  /** Removes the rules of an earlier daemon unless they are needed. Never rejects. */
  tidy(): Promise<void>;
}

export interface MachineWallOptions {
  /** nft table of the host's namespace, in family inet. */
  readonly table: string;
  readonly users: MachineUsers;
  /** The operator lets instances reach this host and its cloud's metadata. */
  readonly isOpen: boolean;
  /** Reads the cluster's policy. While it cannot be read, instances reach only public addresses. */
  readonly readPolicy: () => Promise<ReachPolicy>;
  readonly logger: Logger;
  /** Only tests set it. */
  readonly namespacePath?: string;
  readonly resolverFile?: string;
}

/**
 * INVARIANT: one change at a time. Disposing keeps the rules, because instances outlive the daemon.
 */
export function createUserNicFirewall(options: MachineWallOptions): UserNicFirewall {
  const { table, users, logger, namespacePath = OWN_NAMESPACE } = options;
  const machines = new Set<string>();
  /** User ids of instances that may reach private networks. */
  const open = new Map<string, number>();
  let policy = PUBLIC_ONLY;
  const isNeeded = (): boolean => machines.size > 0;
  const refreshPolicy = async (): Promise<void> => {
    const late = sleep(POLICY_TIMEOUT_MS, policy, { ref: false });
    policy = await Promise.race([options.readPolicy(), late]).catch(() => policy);
  };
  const queue = new SerialQueue<'wall'>();
  let standing: string | undefined;
  const apply = async (): Promise<void> => {
    await refreshPolicy();
    const rules = planWall(table, users, readResolvers(options.resolverFile ?? RESOLVER_FILE), {
      ...policy,
      isHostOpen: options.isOpen,
      open: [...open.values()],
    });
    if (rules === standing && (await stands(namespacePath, table))) return;
    if (rules === standing) logger.warn('wall.was-gone', { table });
    await applyNftCommands(namespacePath, rules);
    standing = rules;
  };
  const remove = async (): Promise<void> => {
    standing = undefined;
    await applyNftCommands(namespacePath, planWallRemoval(table));
  };
  const guarded = (change: () => Promise<void>): Promise<void> =>
    queue.run('wall', change).catch((error: unknown) => {
      logger.error('wall.not-changed', { table, message: messageOf(error) });
    });
  const settle = (): Promise<void> => guarded(() => (isNeeded() ? apply() : remove()));
  const looking = every(LOOK_INTERVAL_MS, async () => {
    if (isNeeded()) await settle();
  });
  return {
    raiseFor: async (machine) => {
      machines.add(machine);
      if (isNeeded()) await queue.run('wall', apply);
    },
    openFor: async (machine, uid) => {
      open.set(machine, uid);
      if (isNeeded()) await guarded(apply);
    },
    lowerFor: async (machine) => {
      open.delete(machine);
      if (machines.delete(machine) && machines.size === 0) await settle();
    },
    tidy: settle,
    [Symbol.asyncDispose]: async () => {
      looking[Symbol.dispose]();
      await queue.run('wall', () => Promise.resolve());
    },
  };
}

/**
 * Plans the whole table. A packet to any address of this host leaves by `lo`; a packet to a
 * subnet's broadcast address also comes back. The host's resolvers are accepted: a user-mode NIC
 * forwards DNS queries of the guest to them, and they may be on loopback or behind the metadata
 * service's address. The range starts after the first user, which no process has.
 */
export function planWall(
  table: string,
  users: MachineUsers,
  resolvers: readonly string[],
  reach: WallReach,
): string {
  const { first, last } = users;
  return [
    planWallRemoval(table),
    `add table inet ${table}`,
    ...planPrivateChain(`inet ${table}`, reach),
    `add chain inet ${table} machines`,
    ...(reach.isHostOpen
      ? ['oifname "lo" return', ...planResolvers(resolvers)]
      : planHostRules(resolvers)
    ).map((rule) => `add rule inet ${table} machines ${rule}`),
    `add rule inet ${table} machines ${exceptOpen(reach)}jump private`,
    `add chain inet ${table} output { type filter hook output priority filter; policy accept; }`,
    `add rule inet ${table} output meta skuid ${first + 1}-${last} jump machines`,
    '',
  ].join('\n');
}

/** Plans the rules that keep instances from this host and from its cloud's metadata. */
function planHostRules(resolvers: readonly string[]): readonly string[] {
  const reject = 'reject with icmpx type admin-prohibited';
  const unreached = [...METADATA_NETWORKS, ...translatedNetworks(METADATA_NETWORKS), ...GROUPS];
  const closed = (['ip', 'ip6'] as const).map((family) => {
    const networks = unreached.filter((one) => familyOf(one) === family);
    return `${family} daddr { ${networks.join(', ')} } ${reject}`;
  });
  return [
    ...planResolvers(resolvers),
    ...closed,
    `fib daddr type { local, broadcast, anycast, multicast } ${reject}`,
    `oifname "lo" ${reject}`,
  ];
}

function planResolvers(resolvers: readonly string[]): readonly string[] {
  return (['ip', 'ip6'] as const).flatMap((family) => {
    const servers = resolvers.filter((one) => familyOf(one) === family).join(', ');
    if (servers === '') return [];
    return [`${family} daddr { ${servers} } meta l4proto { tcp, udp } th dport ${DNS_PORT} accept`];
  });
}

function familyOf(network: string): 'ip' | 'ip6' {
  return isIPv6(bare(network)) ? 'ip6' : 'ip';
}

/** Matches all instances that may not reach private networks. */
function exceptOpen({ confinesAll, open }: WallReach): string {
  if (confinesAll || open.length === 0) return '';
  return `meta skuid != { ${[...new Set(open)].sort((a, b) => a - b).join(', ')} } `;
}

/** Adds the table first, because nft fails to delete a missing table. */
export function planWallRemoval(table: string): string {
  if (!TABLE_PATTERN.test(table))
    throw new Error(`not valid in an nft table: ${JSON.stringify(table)}`);
  return `add table inet ${table}\ndelete table inet ${table}`;
}

/** Returns the addresses of `nameserver` lines (resolv.conf(5)). */
export function parseResolvers(text: string): readonly string[] {
  const addresses = text
    .split('\n')
    .map((line) => line.trim().split(/[ \t]+/))
    .flatMap(([keyword, address = '']) => (keyword === 'nameserver' ? [bare(address)] : []));
  return [...new Set(addresses.filter((address) => isIP(address) !== 0))].slice(0, MAX_RESOLVERS);
}

/** Returns the resolvers of a file, none when it is missing. */
export function readResolvers(path: string): readonly string[] {
  try {
    return parseResolvers(readFileSync(path, 'utf8'));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function stands(namespacePath: string, table: string): Promise<boolean> {
  try {
    await run('nsenter', [
      `--net=${namespacePath}`,
      'nft',
      'list',
      'chain',
      'inet',
      table,
      'output',
    ]);
    return true;
  } catch {
    return false;
  }
}

/** Removes the prefix length and the zone of an address. */
function bare(address: string): string {
  return address.split(/[/%]/, 1)[0] ?? '';
}
