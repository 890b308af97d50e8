import type { Clock } from '#shared/clock/clock.ts';
import type { CryptoProgress, JoinTokenMade, KeyStep } from '#shared/contract/api.ts';
import type { clusterEndpoints } from '#shared/contract/endpoints.ts';
import type { RelaySecretGiven } from '#shared/contract/relay.ts';
import { namesOfIdentity } from '#shared/contract/identity.ts';
import { planPublished } from '../../instances/identity/published.ts';
import { listNamedAppliances } from '../../instances/record/appliance-users.ts';
import type { Relays } from '../../net/relay/relays.ts';
import type { Renewed } from '../../cluster/membership/renew-key.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { Handlers } from './handlers.ts';

export interface ClusterRoutesDependencies {
  readonly clusters: Pick<
    ClusterRepository,
    'load' | 'listOs' | 'loadIdentityKeys' | 'renewIdentityKeys'
  >;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly instances: Pick<InstanceRepository, 'list'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  /** Describes the location of the records. */
  readonly storeDescription: string;
  /** @throws AppError NOT_SUPPORTED on a single-node cluster */
  readonly clusterKey: {
    renew(skip: readonly string[]): Promise<Renewed>;
    progress(): CryptoProgress;
    takeStep(step: KeyStep): Promise<void>;
  };
  /** @throws AppError NOT_SUPPORTED on a single-node cluster */
  readonly issueJoinToken: (lifetimeS: number) => Promise<JoinTokenMade>;
  readonly relays: Pick<Relays, 'listMissing'>;
  readonly giveRelaySecret: (name: string, secret: string) => Promise<RelaySecretGiven>;
  readonly clock: Pick<Clock, 'now'>;
}

export function clusterRoutes(
  dependencies: ClusterRoutesDependencies,
): Handlers<typeof clusterEndpoints> {
  const { clusters, nodes, instances, index, storeDescription, clusterKey } = dependencies;
  const { issueJoinToken, relays, giveRelaySecret, clock } = dependencies;
  return {
    'GET /v1/cluster': async () => {
      const cluster = await clusters.load();
      return {
        ...cluster,
        store: storeDescription,
        nodes: [...(await nodes.names())],
        instances: (await index.list()).length,
        relaysWithoutSecret: [...relays.listMissing(cluster)],
      };
    },
    'GET /v1/appliances/{name}/users': async ({ params }) =>
      (await listNamedAppliances({ clusters, instances })).get(params.name) ?? {
        cluster: false,
        operatingSystems: [],
        instances: [],
      },
    'GET /v1/cluster/renew-crypto': () => clusterKey.progress(),
    'POST /v1/cluster/renew-crypto': async ({ body }) => {
      const { nodes: renewed, skipped } = await clusterKey.renew(body.skip);
      return { nodes: [...renewed], skipped: [...skipped] };
    },
    'GET /v1/cluster/identity': async () => {
      const cluster = await clusters.load();
      const documents = planPublished(cluster, await clusters.loadIdentityKeys(), clock.now());
      return { issuer: namesOfIdentity(cluster).issuer, documents: { ...documents } };
    },
    'POST /v1/cluster/identity-keys': async ({ body }) => {
      const renewed = await clusters.renewIdentityKeys(body.overlapS * 1000);
      return {
        keys: renewed.map(({ createdAtMs, signsFromMs }) => ({ createdAtMs, signsFromMs })),
      };
    },
    'POST /v1/relays/{name}/secret': ({ params, body }) =>
      giveRelaySecret(params.name, body.secret),
    'POST /v1/cluster/join-tokens': ({ body }) => issueJoinToken(body.lifetimeS),
    'POST /v1/cluster/key-steps': ({ body }) => clusterKey.takeStep(body),
  };
}
