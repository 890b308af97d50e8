import {
  clusterInfo,
  type CryptoProgress,
  cryptoProgress,
  cryptoRenewed,
  joinTokenMade,
  type JoinTokenMade,
  makeJoinToken,
  renewCrypto,
} from '#shared/contract/api.ts';
import { applianceUsers } from '#shared/contract/appliance-choice.ts';
import { listNamedAppliances } from '../../instances/record/appliance-users.ts';
import { keyStep, type KeyStep } from '../../cluster/membership/key-step.ts';
import type { Renewed } from '../../cluster/membership/renew-key.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { question, route, type AnyApiRoute } from './api-route.ts';

export interface ClusterRoutesDependencies {
  readonly clusters: Pick<ClusterRepository, 'load' | 'listOs'>;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly instances: Pick<InstanceRepository, 'list'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  /** Where the records are, in words. */
  readonly storeDescription: string;
  /** @throws AppError NOT_SUPPORTED on a node that is a cluster by itself */
  readonly clusterKey: {
    renew(skip: readonly string[]): Promise<Renewed>;
    progress(): CryptoProgress;
    takeStep(step: KeyStep): Promise<void>;
  };
  /** @throws AppError NOT_SUPPORTED on a node that is a cluster by itself */
  readonly issueJoinToken: (lifetimeS: number) => Promise<JoinTokenMade>;
}

export function clusterRoutes(dependencies: ClusterRoutesDependencies): readonly AnyApiRoute[] {
  const { clusters, nodes, instances, index, storeDescription, clusterKey } = dependencies;
  const { issueJoinToken } = dependencies;
  return [
    question('/v1/cluster', 'Describes the cluster and its settings', clusterInfo, async () => ({
      ...(await clusters.load()),
      store: storeDescription,
      nodes: [...(await nodes.names())],
      instances: (await index.list()).length,
    })),
    question(
      '/v1/appliances/{name}/users',
      'Lists the cluster, OS definitions and instances that use an appliance',
      applianceUsers,
      async ({ name }) =>
        (await listNamedAppliances({ clusters, instances })).get(name) ?? {
          ...{ cluster: false, operatingSystems: [], instances: [] },
        },
    ),
    question(
      '/v1/cluster/renew-crypto',
      'Reports the progress of a renewal of the cluster key that this node runs',
      cryptoProgress,
      () => Promise.resolve(clusterKey.progress()),
    ),
    route({
      method: 'POST',
      path: '/v1/cluster/renew-crypto',
      summary: 'Renews the cluster key, which seals all records',
      request: renewCrypto,
      answers: { 200: cryptoRenewed },
      handle: async ({ body }) => {
        const { nodes: renewed, skipped } = await clusterKey.renew(body.skip);
        return { status: 200, body: { nodes: [...renewed], skipped: [...skipped] } };
      },
    }),
    route({
      method: 'POST',
      path: '/v1/cluster/join-tokens',
      summary: 'Creates a join token for one node',
      request: makeJoinToken,
      answers: { 200: joinTokenMade },
      handle: async ({ body }) => ({ status: 200, body: await issueJoinToken(body.lifetimeS) }),
    }),
    route({
      method: 'POST',
      path: '/v1/cluster/key-steps',
      summary: 'Between nodes: carries out one step of a renewal of the cluster key',
      request: keyStep,
      answers: { 204: null },
      handle: async ({ body }) => {
        await clusterKey.takeStep(body);
        return { status: 204 };
      },
    }),
  ];
}
