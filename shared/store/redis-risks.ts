import { MIB } from '../units/bytes.ts';

/** A danger from the settings or the state of a store. */
export interface StoreRisk {
  /** `error`: acknowledged writes may be lost, or writes are impossible. */
  readonly level: 'error' | 'warning';
  readonly message: string;
  readonly hint: string;
}

/** INFO of the server, and settings that it reveals. */
export interface RedisFacts {
  readonly info: string;
  /** Null where CONFIG is forbidden, as in hosted services. */
  readonly appendFsync: string | null;
  /** `client-output-buffer-limit`, in the server's words; null as above. */
  readonly outputLimits: string | null;
  /** Replicas that must confirm a write, so that this server's own disk is not the only copy. */
  readonly replicas: number;
  /**
   * Number of Sentinels, and of those in the URL; null without any. Sentinels promote a replica
   * whatever it has.
   */
  readonly sentinels: { readonly named: number; readonly all: number } | null;
}

/** Finds risks in known facts; fields differ between releases. Pure. */
export function findRedisRisks({
  info,
  appendFsync,
  outputLimits,
  replicas,
  sentinels,
}: RedisFacts): readonly StoreRisk[] {
  const facts = new Map(
    info.split(/\r?\n/).flatMap((line): [string, string][] => {
      const at = line.indexOf(':');
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)]] : [];
    }),
  );
  return [
    ...findEviction(facts),
    ...findFailedWrites(facts),
    ...(sentinels ? findTakenBack(facts, replicas) : []),
    ...(sentinels && replicas > 0 ? findUnnamed(sentinels) : []),
    ...findDelay(facts, appendFsync, replicas > 0),
    ...findOutputLimits(outputLimits ?? ''),
  ];
}

/**
 * Records have no time to live, so volatile-* policies evict none. A whole collection is one key.
 */
function findEviction(facts: ReadonlyMap<string, string>): readonly StoreRisk[] {
  const policy = facts.get('maxmemory_policy') ?? '';
  const limit = Number(facts.get('maxmemory') ?? 0);
  const evicted = Number(facts.get('evicted_keys') ?? 0);
  const hint = 'Set maxmemory-policy to noeviction, in redis.conf and with CONFIG SET';
  if (!policy.startsWith('allkeys')) return [];
  if (evicted > 0) {
    return [
      {
        level: 'error',
        message: `it has evicted ${evicted} keys since its start (maxmemory-policy ${policy}): records may be lost`,
        hint: `${hint}, and restore the data from a backup`,
      },
    ];
  }
  if (limit === 0) return [];
  return [
    {
      level: 'error',
      message: `it evicts records when it holds more than ${limit} bytes (maxmemory-policy ${policy})`,
      hint,
    },
  ];
}

function findFailedWrites(facts: ReadonlyMap<string, string>): readonly StoreRisk[] {
  const failed = ['aof_last_write_status', 'aof_last_bgrewrite_status', 'rdb_last_bgsave_status']
    .filter((name) => facts.get(name) === 'err'); // prettier-ignore
  if (failed.length === 0) return [];
  return [
    {
      level: 'error',
      message: `it cannot write to its own disk (${failed.join(', ')})`,
      hint: 'Free space on the file system of the store. It then accepts writes again.',
    },
  ];
}

/**
 * A failover loses writes that are not on most of the servers, and an isolated master does not
 * notice.
 */
function findTakenBack(facts: ReadonlyMap<string, string>, replicas: number): readonly StoreRisk[] {
  const servers = Number(facts.get('connected_slaves') ?? 0) + 1;
  if (replicas > 0 && 2 * (replicas + 1) > servers) return [];
  const least = Math.max(1, Math.floor(servers / 2));
  const told = replicas === 0 ? 'no replica must' : `${replicas} of ${servers - 1} replicas must`;
  return [
    {
      level: 'warning',
      message: `after a Sentinel failover the new master may lack acknowledged writes (${told} confirm a write)`,
      hint: `Add ?replicas=${least} to url in var/lib/gnt/store.json on all nodes, then restart gnt-noded. Without it, instance failover is refused.`,
    },
  ];
}

/** A master that lost a replica needs the confirmation of most Sentinels in the URL. */
function findUnnamed({ named, all }: NonNullable<RedisFacts['sentinels']>): readonly StoreRisk[] {
  if (named >= all) return [];
  return [
    {
      level: 'warning',
      message: `its URL names ${named} of ${all} Sentinels: when one of their hosts is down, the remaining ones may be too few to confirm the master, and writes fail`,
      hint: 'Name all Sentinels in url in var/lib/gnt/store.json on all nodes, then restart gnt-noded.',
    },
  ];
}

function findDelay(
  facts: ReadonlyMap<string, string>,
  appendFsync: string | null,
  isReplicated: boolean,
): readonly StoreRisk[] {
  if (isReplicated) return [];
  const message =
    facts.get('aof_enabled') === '0'
      ? 'a crash loses the writes since the last snapshot (appendonly no)'
      : appendFsync !== null && appendFsync !== 'always'
        ? `a power failure may lose the writes of the last second or more (appendfsync ${appendFsync})`
        : null;
  if (message === null) return [];
  const hint = 'Set appendonly yes and appendfsync always, or use a replica and ?replicas=1';
  return [{ level: 'warning', message, hint }];
}

/** Above the limit of waiting bytes in the streams between nodes. */
const WAITING_BYTES = 8 * MIB;

/** Subscribers have an immediate limit, and one for some seconds; 0 is none. */
function findOutputLimits(limits: string): readonly StoreRisk[] {
  const [, hard = 0, soft = 0] = (/pubsub (\d+) (\d+)/.exec(limits) ?? []).map(Number);
  const least = Math.min(...[hard, soft].filter((bytes) => bytes > 0));
  if (least >= WAITING_BYTES) return [];
  return [
    {
      level: 'warning',
      message: `it disconnects a node that has ${least} bytes of unread messages (client-output-buffer-limit pubsub)`,
      hint: 'Set client-output-buffer-limit to "pubsub 32mb 8mb 60", in redis.conf and with CONFIG SET',
    },
  ];
}
