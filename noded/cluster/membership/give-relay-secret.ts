import type { RelaySecretGiven } from '#shared/contract/relay.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Relays } from '../../net/relay/relays.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { askPeer, type Peers } from '../peers/ask-peer.ts';

const ANSWER_TIMEOUT_MS = 15_000;

/**
 * Gives the secret of a relay to this node, and to all others in sealed streams.
 * @throws AppError NOT_FOUND; no node has taken the secret then
 */
export async function giveToNodes(
  name: string,
  secret: string,
  dependencies: {
    readonly nodeName: string;
    readonly nodes: Pick<NodeRegistry, 'names'>;
    readonly peers: Peers;
    readonly relays: Pick<Relays, 'give'>;
  },
): Promise<RelaySecretGiven> {
  const { nodeName, nodes, peers, relays } = dependencies;
  await relays.give(name, secret);
  const others = (await nodes.names()).filter((node) => node !== nodeName);
  const outcomes = await Promise.all(
    others.map(async (node) => {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
      try {
        await askPeer(peers, node, 'POST /v1/relays/{name}/secret', {
          ...{ name, body: { secret }, signal },
        });
        return { node, reason: null };
      } catch (error) {
        if (isAppError(error)) return { node, reason: error.message };
        if (signal.aborted) return { node, reason: 'no answer in time' };
        throw error;
      }
    }),
  );
  const missing = outcomes.flatMap(({ node, reason }) =>
    reason === null ? [] : [{ node, reason }],
  );
  const given = outcomes.flatMap(({ node, reason }) => (reason === null ? [node] : []));
  return { nodes: [nodeName, ...given].sort(), missing };
}
