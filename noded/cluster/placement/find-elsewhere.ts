import { isAppError } from '#shared/errors/app-error.ts';
import { askPeer, type Peers } from '../peers/ask-peer.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';

/** Time limit for another node's answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 10_000;

/** An OS definition on another node. */
export interface FoundElsewhere {
  readonly node: string;
  readonly digest: string;
}

/** Looks for OS definitions that this node does not have. */
export type FindElsewhere = (osName: string) => Promise<FoundElsewhere | null>;

/**
 * Creates a function that returns the first other node with the definition. It skips nodes that do
 * not respond.
 */
export function createFindElsewhere(
  peers: Peers | null,
  nodes: Pick<NodeRegistry, 'names'>,
  ownName: string,
): FindElsewhere {
  if (peers === null) return () => Promise.resolve(null);
  return async (osName) => {
    for (const node of await nodes.names()) {
      if (node === ownName) continue;
      try {
        const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
        const { trust } = await askPeer(peers, node, 'GET /v1/os/{name}', { name: osName, signal });
        if (trust.digest !== null) return { node, digest: trust.digest };
      } catch (error) {
        const isPassedOver =
          isAppError(error) || (error instanceof Error && error.name === 'TimeoutError');
        if (!isPassedOver) throw error;
      }
    }
    return null;
  };
}
