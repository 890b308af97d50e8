import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';

/**
 * Tells whether this node was removed from its cluster, which happens while it is disconnected. Its
 * names, addresses and MACs may belong to others now. So it must not change the store.
 * @param publicKey of this node, in base64; null without a common store
 */
export function createMembership(
  nodes: Pick<NodeRegistry, 'removedAtMs'>,
  publicKey: string | null,
  logger: Logger,
) {
  let removedAtMs: number | null = null;
  return {
    /** Milliseconds since the epoch; null for a member. */
    removedAtMs: (): number | null => removedAtMs,
    /** Reads the store again. A removal is final. */
    refresh: async (): Promise<void> => {
      if (publicKey === null || removedAtMs !== null) return;
      removedAtMs = await nodes.removedAtMs(publicKey);
      if (removedAtMs !== null) logger.error('node.removed', { removedAtMs });
    },
    /** @throws AppError NODE_REMOVED */
    requireMember: (): void => {
      if (removedAtMs === null) return;
      throw new AppError('NODE_REMOVED', describeRemoval(removedAtMs), {
        details: { removedAtMs },
        hint: REJOIN_HINT,
      });
    },
  };
}

export type Membership = ReturnType<typeof createMembership>;

export function describeRemoval(removedAtMs: number): string {
  return `this node was removed from its cluster at ${new Date(removedAtMs).toISOString()}`;
}

export const REJOIN_HINT =
  'Its instances keep running and appear as ERROR_orphan in gnt-instance list. To join again as a new node: stop gnt-noded, move /var/lib/gnt/node.key away, start gnt-noded, then adopt or remove the instances.';

/** Hint for a running node that is marked offline. */
export const OFFLINE_HINT =
  'Run gnt-node modify --offline no NODE on any node, or stop gnt-noded here.';
