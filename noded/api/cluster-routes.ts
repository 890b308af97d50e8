import { clusterInfo } from '#shared/contract/api.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface ClusterRoutesDependencies {
  readonly clusters: Pick<ClusterRepository, 'load'>;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly instances: Pick<InstanceRepository, 'list'>;
  /** Where the records are, in words. */
  readonly storeDescription: string;
}

export function clusterRoutes(dependencies: ClusterRoutesDependencies): readonly AnyApiRoute[] {
  const { clusters, nodes, instances, storeDescription } = dependencies;
  return [
    question('/v1/cluster', 'The cluster', clusterInfo, async () => ({
      ...(await clusters.load()),
      store: storeDescription,
      nodes: [...(await nodes.names())],
      instances: (await instances.list()).length,
    })),
  ];
}
