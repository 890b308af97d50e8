import { z } from 'zod';

/**
 * What a node may write shared disks by. It counts up for as long as it lives; who takes an
 * instance of it away says so here, in the commit that changes the instance's record, so that the
 * node finds it with its next renewal, before that counts.
 */
export const nodeLease = z.object({
  schema: z.literal(1),
  /** So long after the last renewal the node has surely paused its machines with shared disks. */
  ttlMs: z.number().int().positive(),
  renewals: z.number().int().nonnegative(),
  /**
   * Replicas of the store that had to have the last renewal; none said: a failover may take it
   * back.
   */
  replicas: z.number().int().positive().optional(),
  /** Instances that were taken since then: their machines on this node end. */
  taken: z.array(z.uuid()),
});
export type NodeLease = z.infer<typeof nodeLease>;
