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
import { listNamedAppliances } from '../instances/appliance-users.ts';
import { keyStep, type KeyStep } from '../cluster/key-step.ts';
import type { Renewed } from '../cluster/renew-key.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { InstanceIndex } from '../records/instance-index.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
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
    question('/v1/cluster', 'The cluster', clusterInfo, async () => ({
      ...(await clusters.load()),
      store: storeDescription,
      nodes: [...(await nodes.names())],
      instances: (await index.list()).length,
    })),
    question(
      '/v1/appliances/{name}/users',
      'Who names an appliance to be installed with',
      applianceUsers,
      async ({ name }) =>
        (await listNamedAppliances({ clusters, instances })).get(name) ?? {
          ...{ cluster: false, operatingSystems: [], instances: [] },
        },
    ),
    question(
      '/v1/cluster/renew-crypto',
      'What the exchange of the key that this node carries out has done so far',
      cryptoProgress,
      () => Promise.resolve(clusterKey.progress()),
    ),
    route({
      method: 'POST',
      path: '/v1/cluster/renew-crypto',
      summary: 'Exchanges the key that the records of the cluster are sealed with',
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
      summary: 'Makes a word by which one node joins the cluster',
      request: makeJoinToken,
      answers: { 200: joinTokenMade },
      handle: async ({ body }) => ({ status: 200, body: await issueJoinToken(body.lifetimeS) }),
    }),
    route({
      method: 'POST',
      path: '/v1/cluster/key-steps',
      summary: 'Between nodes: one step of the exchange of the key',
      request: keyStep,
      answers: { 204: null },
      handle: async ({ body }) => {
        await clusterKey.takeStep(body);
        return { status: 204 };
      },
    }),
  ];
}
