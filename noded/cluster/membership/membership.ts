import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';

/**
 * Whether this node still belongs to its cluster. One that was removed while it was cut off knows
 * nothing of it: its names, addresses and MACs may be others' by now, so nothing in the store is
 * its own any more, and it changes nothing there.
 */
export interface Membership {
  /** Milliseconds since the epoch; null of a member. */
  removedAtMs(): number | null;
  /** Asks the store again. What was found once stays. */
  refresh(): Promise<void>;
  /** @throws AppError NODE_REMOVED */
  requireMember(): void;
}

/** @param publicKey of this node, in base64; null of one that is a cluster by itself */
export function createMembership(
  nodes: Pick<NodeRegistry, 'removedAtMs'>,
  publicKey: string | null,
  logger: Logger,
): Membership {
  let removedAtMs: number | null = null;
  return {
    removedAtMs: () => removedAtMs,
    refresh: async () => {
      if (publicKey === null || removedAtMs !== null) return;
      removedAtMs = await nodes.removedAtMs(publicKey);
      if (removedAtMs !== null) logger.error('node.removed', { removedAtMs });
    },
    requireMember: () => {
      if (removedAtMs === null) return;
      throw new AppError('NODE_REMOVED', describeRemoval(removedAtMs), {
        details: { removedAtMs },
        hint: REJOIN_HINT,
      });
    },
  };
}

/** What became of it, in words for people. */
export function describeRemoval(removedAtMs: number): string {
  return `this node was removed from its cluster at ${new Date(removedAtMs).toISOString()}`;
}

export const REJOIN_HINT =
  'Its instances keep running and appear as ERROR_orphan in gnt-instance list. To join again as a new node: stop gnt-noded, move /var/lib/gnt/node.key away, start gnt-noded, then adopt or remove the instances.';

/** What to do about a node that runs and is marked offline. */
export const OFFLINE_HINT =
  'Run gnt-node modify --offline no NODE on any node, or stop gnt-noded here.';
