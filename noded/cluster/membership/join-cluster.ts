import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { createMembership, type Membership } from './membership.ts';
import { startNodeLinks, type NodeLinks, type NodeLinksOptions } from '../peers/node-links.ts';
import { encodeKey, loadNodeKey } from '../../records/node-key.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { OpenedStore } from '../../records/open-store.ts';

export interface Joined extends AsyncDisposable {
  /** Null for a node without a common store, and for a removed node. */
  readonly peers: NodeLinks | null;
  readonly membership: Membership;
}

interface JoinSettings {
  readonly nodeName: string;
  readonly dataAddress: NodeLinksOptions['dataAddress'];
}

/**
 * Registers this node and connects it to the others. A removed node does neither, because its name
 * may belong to another node now.
 * @throws AppError CONFLICT when the name belongs to another node, another daemon runs as this
 * node, or the data address cannot be used
 */
export async function joinCluster(
  { common }: OpenedStore,
  { nodeName, dataAddress }: JoinSettings,
  nodes: NodeRegistry,
  paths: RootPaths,
  logger: Logger,
): Promise<Joined> {
  const joined = (peers: NodeLinks | null, membership: Membership): Joined => ({
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
  const { server } = common;
  const link = await startNodeLinks({ server, nodeName, key, nodes, dataAddress, logger });
  return joined(link, membership);
}
