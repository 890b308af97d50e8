import { route, type AnyApiRoute, type ApiRoutes } from './api-route.ts';
import { bootContentRoutes, type BootContentRoutesDependencies } from './boot-content-routes.ts';
import { bootRoutes, type BootRoutesDependencies } from './boot-routes.ts';
import { channelRoutes, channelStreams, type ChannelRoutesDependencies } from './channel-routes.ts';
import { clusterRoutes, type ClusterRoutesDependencies } from './cluster-routes.ts';
import { moveRoutes, moveStreams, type MoveRoutesDependencies } from './move-routes.ts';
import { exportRoutes, type ExportRoutesDependencies } from './export-routes.ts';
import { instanceRoutes, type InstanceRoutesDependencies } from './instance-routes.ts';
import { jobRoutes, type JobRoutesDependencies } from './job-routes.ts';
import { nodeRoutes, type NodeRoutesDependencies } from './node-routes.ts';
import { imageRoutes, type ImageRoutesDependencies } from './image-routes.ts';
import { describeApi } from './openapi.ts';
import { networkRoutes, type NetworkRoutesDependencies } from './network-routes.ts';
import { profileRoutes, type ProfileRoutesDependencies } from './profile-routes.ts';
import { osRoutes, type OsRoutesDependencies } from './os-routes.ts';

/** The parts that each group of routes works on. */
export type ApiDependencies = NodeRoutesDependencies &
  ClusterRoutesDependencies &
  InstanceRoutesDependencies &
  BootRoutesDependencies &
  ChannelRoutesDependencies &
  ExportRoutesDependencies &
  ImageRoutesDependencies &
  OsRoutesDependencies &
  ProfileRoutesDependencies &
  NetworkRoutesDependencies &
  BootContentRoutesDependencies &
  MoveRoutesDependencies &
  JobRoutesDependencies & { readonly version: string };

/** Every route of the node's API, in the order of its document. */
export function createApiRoutes(dependencies: ApiDependencies): ApiRoutes {
  const streams = [...channelStreams(dependencies), ...moveStreams(dependencies)];
  const routes: readonly AnyApiRoute[] = [
    ...nodeRoutes(dependencies),
    ...clusterRoutes(dependencies),
    ...instanceRoutes(dependencies),
    ...bootRoutes(dependencies),
    ...channelRoutes(dependencies),
    ...exportRoutes(dependencies),
    ...imageRoutes(dependencies),
    ...osRoutes(dependencies),
    ...profileRoutes(dependencies),
    ...networkRoutes(dependencies),
    ...bootContentRoutes(dependencies),
    ...moveRoutes(dependencies),
    ...jobRoutes(dependencies),
    route({
      method: 'GET',
      path: '/v1/openapi.json',
      summary: 'Returns this API as an OpenAPI document',
      answers: { 200: { type: 'application/json' } },
      handle: () => {
        const document = describeApi(dependencies.version, { routes, streams });
        return { status: 200, body: JSON.stringify(document) };
      },
    }),
  ];
  return { routes, streams };
}
