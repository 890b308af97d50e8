import type { NodeReport } from '#shared/contract/api.ts';
import { toError } from '#shared/errors/app-error.ts';
import type { ListedFlags, NodeRegistry } from '../../records/node-registry.ts';
import { askPeer, type Peers } from '../peers/ask-peer.ts';

/** An examination compares the files of an appliance with its manifest. */
const EXAMINATION_TIMEOUT_MS = 60_000;

/** Asks every other node to examine itself. @param own the reports of this node */
export async function examineNodes(
  own: Promise<readonly NodeReport[]>,
  {
    nodes,
    owns,
    peers,
  }: {
    readonly nodes: Pick<NodeRegistry, 'list'>;
    readonly owns: (node: string) => boolean;
    readonly peers: Peers;
  },
): Promise<readonly NodeReport[]> {
  const examine = async ({ name, flags }: ListedFlags): Promise<NodeReport> => {
    try {
      const signal = AbortSignal.timeout(EXAMINATION_TIMEOUT_MS);
      return { node: name, report: await askPeer(peers, name, 'GET /v1/doctor', { signal }) };
    } catch (error) {
      return { node: name, silent: toError(error).message, isOffline: flags.offline };
    }
  };
  const others = (await nodes.list()).filter(({ name }) => !owns(name));
  const all = await Promise.all([own, ...others.map(examine)]);
  return all.flat().sort((a, b) => a.node.localeCompare(b.node));
}
