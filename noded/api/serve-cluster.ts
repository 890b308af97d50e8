import type { ApiDependencies } from './api-dependencies.ts';
import { createConnectionApi } from './api-server.ts';
import type { PeerLink } from '../peers/peer-link.ts';
import { createClusterJobs } from '../cluster/cluster-jobs.ts';
import { createClusterOverview } from '../cluster/overview.ts';

/**
 * Lets other nodes ask this one for what it has, and this one's own clients for what any node has.
 * @param own answers from this node alone, which is all that other nodes get: nothing is forwarded twice
 */
export function serveCluster(
  link: PeerLink,
  own: ApiDependencies,
  nodeName: string,
): ApiDependencies {
  link.onStream = createConnectionApi(own);
  const owns = (node: string): boolean => node === nodeName;
  return {
    ...own,
    jobs: createClusterJobs({ ...own, nodeName, own: own.jobs, peers: link }),
    overview: createClusterOverview(own.overview, { ...own, owns, peers: link }),
    forwarding: { peers: link, instances: own.instances, owns },
  };
}
