import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { nodeLease } from '#shared/contract/node-lease.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { mayTakeBack, type RedisServer } from '#shared/store/store-url.ts';
import { NODE_LEASES } from './node-lease.ts';
import { leftMs, observe, type Observation } from './plan-lease.ts';

/** Observes the leases of other nodes. */
export interface ForeignLeases {
  /**
   * Refuses a store that cannot show the end of a node's lease. Under Sentinel, a master that was
   * cut off may keep answering that node, unless renewals wait for replicas.
   * @throws AppError HOST_PREREQUISITE
   */
  requireSeen(node: string): Promise<void>;
  /**
   * Waits until a node has paused its instances with shared disks, by its lease.
   * @throws AppError INSTANCE_STATE: it still renews its lease
   */
  untilOver(
    node: string,
    how: { readonly signal: AbortSignal; readonly onWait: (leftMs: number) => void },
  ): Promise<void>;
  /**
   * Returns the write that takes an instance from a node whose lease has ended. The commit fails if
   * the node renews the lease meanwhile.
   * @throws AppError INSTANCE_STATE: it has renewed its lease
   */
  planTaking(node: string, uuid: string): Promise<Write>;
}

export interface ForeignLeasesDependencies {
  readonly store: Pick<Store, 'get'>;
  /** The lease time of a node without a lease record. */
  readonly ttlMs: number;
  /** Null on a single-node cluster. */
  readonly server: RedisServer | null;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

const LOOK_MS = 500;

export function createForeignLeases(dependencies: ForeignLeasesDependencies): ForeignLeases {
  const { store, ttlMs, server, clock } = dependencies;
  const observed = new Map<string, Observation>();
  const look = async (node: string) => {
    const stored = await store.get(NODE_LEASES, node);
    const record = stored && parseRecord(nodeLease, NODE_LEASES, stored);
    // Measured after the answer: the record may have been renewed earlier.
    const now = clock.monotonicMs();
    const observation = observe(observed.get(node), record?.renewals ?? null, now);
    observed.set(node, observation);
    return { stored, record, left: leftMs(observation, record?.ttlMs ?? ttlMs, now) };
  };
  return {
    requireSeen: async (node) => {
      if (server === null || !('sentinels' in server)) return;
      const { record } = await look(node);
      if (mayTakeBack(server) || record?.replicas === undefined) throw itCannotBeSeen(node);
    },
    untilOver: async (node, { signal, onWait }) => {
      const first = await look(node);
      for (let seen = first; seen.left > 0; seen = await look(node)) {
        if (seen.record?.renewals !== first.record?.renewals) throw itLives(node);
        onWait(seen.left);
        await sleep(LOOK_MS, undefined, { signal });
      }
    },
    planTaking: async (node, uuid) => {
      const { stored, record, left } = await look(node);
      if (left > 0) throw itLives(node);
      const before = record ?? { schema: 1, ttlMs, renewals: 0, taken: [] };
      const value = { ...before, taken: [...new Set([...before.taken, uuid])] };
      const expected = stored?.revision ?? 'absent';
      return { collection: NODE_LEASES, id: node, expected, value };
    },
  };
}

function itCannotBeSeen(node: string): AppError {
  return new AppError(
    'HOST_PREREQUISITE',
    `cannot tell whether node ${node} still renews its lease: the store runs under Sentinel, and no replica must confirm writes`,
    {
      details: { node },
      hint: `Add ?replicas=N to the url in var/lib/gnt/store.json of all nodes and restart gnt-noded there. If ${node} is certainly switched off: gnt-node modify --offline yes ${node}`,
    },
  );
}

function itLives(node: string): AppError {
  return new AppError('INSTANCE_STATE', `node ${node} is alive: it renews its lease`, {
    details: { node },
    hint: 'Fail over only from nodes that are down. Check gnt-node info, and gnt-node doctor on that node.',
  });
}
