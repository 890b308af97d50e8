import { silentLogger } from '#shared/log/log.ts';
import { type BootViews, createBootViews } from '../../../noded/instances/view/boot-views.ts';
import type { ClusterRepository } from '../../../noded/records/cluster-repository.ts';

/** Of a node that has opened no archive. */
export function createLabBootViews(clusters: ClusterRepository): BootViews {
  return createBootViews({
    sources: { clusters, archives: { find: () => null } },
    trees: { offer: () => undefined, forget: () => undefined },
    logger: silentLogger,
  });
}

/** Of a cluster without signed identities. */
export const noIdentities = { planView: () => Promise.resolve(undefined) };
