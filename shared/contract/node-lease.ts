import { z } from 'zod';

/**
 * A node's right to write shared disks. The node renews it periodically. A node that takes over an
 * instance names it here, in the commit that changes the instance's record. The former owner finds
 * it with its next renewal, before that renewal counts.
 */
export const nodeLease = z.object({
  schema: z.literal(1),
  /** The node has paused its QEMU processes with shared disks this long after its last renewal. */
  ttlMs: z.number().int().positive(),
  renewals: z.number().int().nonnegative(),
  /**
   * Replicas of the store that confirmed the last renewal. Absent: a failover of the store may lose
   * it.
   */
  replicas: z.number().int().positive().optional(),
  /** Instances that were taken over since. Their QEMU processes on this node end. */
  taken: z.array(z.uuid()),
});
export type NodeLease = z.infer<typeof nodeLease>;
