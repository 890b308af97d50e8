import { z } from 'zod';
import { AppError } from '#shared/errors/app-error.ts';

/** Flags that an operator sets on a node, as in Ganeti. */
export const nodeFlags = z.object({
  /** It gets no new instances; its own keep running. */
  drained: z.boolean(),
  /** It is down for longer. Other nodes send no requests, and it runs no jobs. */
  offline: z.boolean(),
});
export type NodeFlags = z.infer<typeof nodeFlags>;

export const NO_FLAGS: NodeFlags = { drained: false, offline: false };

export interface NodeFlagChanges {
  readonly drained?: boolean | undefined;
  readonly offline?: boolean | undefined;
}

/**
 * Returns the flags after a change. As in Ganeti, a node has one role, so setting one flag unsets
 * the other. Pure.
 */
export function changeNodeFlags(flags: NodeFlags, changes: NodeFlagChanges): NodeFlags {
  const { drained = flags.drained, offline = flags.offline } = changes;
  if (changes.offline === true) return { drained: false, offline: true };
  if (changes.drained === true) return { drained: true, offline: false };
  return { drained, offline };
}

/** @throws AppError NODE_OFFLINE */
export function requireOnline(node: string, { offline }: Pick<NodeFlags, 'offline'>): void {
  if (!offline) return;
  throw new AppError('NODE_OFFLINE', `node '${node}' is marked offline`, {
    details: { node },
    hint: `When the node is back, run: gnt-node modify --offline no ${node}`,
  });
}

/** @throws AppError NODE_DRAINED, NODE_OFFLINE */
export function requireTakesNew(node: string, flags: NodeFlags): void {
  requireOnline(node, flags);
  if (!flags.drained) return;
  throw new AppError('NODE_DRAINED', `node '${node}' is drained and accepts no new instances`, {
    details: { node },
    hint: `Choose another node, or run: gnt-node modify --drained no ${node}`,
  });
}
