import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { createMembership, type Membership } from './membership.ts';
import { startPeerLink, type PeerLink } from '../peers/peer-link.ts';
import { encodeKey, loadNodeKey } from '../../records/node-key.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { OpenedStore } from '../../records/open-store.ts';

export interface Joined extends AsyncDisposable {
  /** Null for a node without a common store, and for a removed node. */
  readonly peers: PeerLink | null;
  readonly membership: Membership;
}

/**
 * Registers this node and connects it to the others. A removed node does neither, because its name
 * may belong to another node now.
 * @throws AppError CONFLICT when the name belongs to another node, or another daemon runs as this
 * node
 */
export async function joinCluster(
  { common }: OpenedStore,
  nodeName: string,
  nodes: NodeRegistry,
  paths: RootPaths,
  logger: Logger,
): Promise<Joined> {
  const joined = (peers: PeerLink | null, membership: Membership): Joined => ({
    peers,
    membership,
    [Symbol.asyncDispose]: async () => peers?.[Symbol.asyncDispose](),
  });
  if (common === null) {
    await nodes.registerAlone(nodeName);
    return joined(null, createMembership(nodes, null, logger));
  }
  const key = await loadNodeKey(paths.nodeKeyFile);
  const publicKey = encodeKey(key.publicKey);
  const membership = createMembership(nodes, publicKey, logger);
  await membership.refresh();
  if (membership.removedAtMs() !== null) return joined(null, membership);
  await nodes.register(nodeName, publicKey);
  const link = await startPeerLink({ server: common.server, nodeName, key, nodes, logger });
  return joined(link, membership);
}
