import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { startPeerLink, type PeerLink } from '../peers/peer-link.ts';
import { encodeKey, loadNodeKey } from '../records/node-key.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import type { OpenedStore } from '../records/open-store.ts';

/**
 * Registers this node, and meets the others where there may be some.
 * @returns null for a node that is a cluster by itself
 * @throws AppError CONFLICT when the name is another node's, or another daemon runs as this node
 */
export async function joinCluster(
  { common }: OpenedStore,
  nodeName: string,
  nodes: NodeRegistry,
  paths: RootPaths,
  logger: Logger,
): Promise<PeerLink | null> {
  if (common === null) {
    await nodes.registerAlone(nodeName);
    return null;
  }
  const key = await loadNodeKey(paths.nodeKeyFile);
  await nodes.register(nodeName, encodeKey(key.publicKey));
  return startPeerLink({ server: common.server, nodeName, key, nodes, logger });
}
