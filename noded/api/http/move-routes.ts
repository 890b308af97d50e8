import type { moveEndpoints, moveStreamEndpoints } from '#shared/contract/move-endpoints.ts';
import { uuid } from '#shared/contract/primitives.ts';
import type { MigrationTarget } from '../../cluster/migration/migration-target-contract.ts';
import type { Handlers } from './handlers.ts';
import { parseInput } from './http-errors.ts';

export interface MoveRoutesDependencies {
  readonly migrationTarget: MigrationTarget;
}

/** Implements the requests from an instance's node to this node, which receives the instance. */
export function moveRoutes({
  migrationTarget,
}: MoveRoutesDependencies): Handlers<typeof moveEndpoints & typeof moveStreamEndpoints> {
  const meant = (params: { readonly uuid: string }): string => parseInput(uuid, params.uuid);
  return {
    'POST /v1/arrivals/{uuid}/check': async ({ params, signal }) => {
      await migrationTarget.check(meant(params), signal);
      return {};
    },
    'POST /v1/arrivals/{uuid}/check-machine': async ({ params, body, signal }) => {
      await migrationTarget.check(meant(params), signal, body.nature);
      return {};
    },
    'POST /v1/arrivals/{uuid}/{session}/expect': async ({ params, body, from, signal }) => {
      await migrationTarget.expect({ ...params, uuid: meant(params), from }, body, signal);
      return {};
    },
    'POST /v1/arrivals/{uuid}/{session}/sync': async ({ params, from }) => {
      await migrationTarget.sync({ ...params, uuid: meant(params), from });
      return {};
    },
    'POST /v1/arrivals/{uuid}/{session}/metadata': async ({ params, body, from }) => {
      await migrationTarget.handOver({ ...params, uuid: meant(params), from }, body);
      return {};
    },
    'POST /v1/arrivals/{uuid}/{session}/await': async ({ params, from, signal }) => ({
      serialNo: await migrationTarget.awaitGuest({ ...params, uuid: meant(params), from }, signal),
    }),
    'POST /v1/arrivals/{uuid}/begin': ({ params, body, from, signal }) =>
      migrationTarget.begin({ uuid: meant(params), from }, body.files, signal),
    'POST /v1/arrivals/{uuid}/{session}/files/{name}': async ({ params, body, from }) => {
      await migrationTarget.write({ ...params, uuid: meant(params), from }, body);
      return {};
    },
    'POST /v1/arrivals/{uuid}/{session}/verify': async ({ params, body, from, signal }) => {
      await migrationTarget.verify({ ...params, uuid: meant(params), from }, body.digests, signal);
      return {};
    },
    'POST /v1/arrivals/{uuid}/end': ({ params, from }) =>
      migrationTarget.end({ uuid: meant(params), from }),
    'POST /v1/arrivals/{uuid}/end-remains': ({ params, from }) =>
      migrationTarget.endRemains({ uuid: meant(params), from }),
    'GET /v1/arrivals/{uuid}/{session}/streams/{name}': async (params) =>
      migrationTarget.openStream({ ...params, uuid: meant(params) }),
    'GET /v1/arrivals/{uuid}/{session}/files/{name}': (params) =>
      migrationTarget.openFile({ ...params, uuid: meant(params) }),
  };
}
