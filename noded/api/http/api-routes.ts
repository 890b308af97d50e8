import { bootRoutes, type BootRoutesDependencies } from './boot-routes.ts';
import { channelRoutes, type ChannelRoutesDependencies } from './channel-routes.ts';
import { clusterRoutes, type ClusterRoutesDependencies } from './cluster-routes.ts';
import { eventRoutes, type EventRoutesDependencies } from './event-routes.ts';
import type { ApiHandlers } from './handlers.ts';
import { imageRoutes, type ImageRoutesDependencies } from './image-routes.ts';
import { instanceRoutes, type InstanceRoutesDependencies } from './instance-routes.ts';
import { jobRoutes, type JobRoutesDependencies } from './job-routes.ts';
import { moveRoutes, type MoveRoutesDependencies } from './move-routes.ts';
import { nodeRoutes, type NodeRoutesDependencies } from './node-routes.ts';
import { objectRoutes, type ObjectRoutesDependencies } from './object-routes.ts';
import { describeApi } from './openapi.ts';
import { osRoutes, type OsRoutesDependencies } from './os-routes.ts';
import { webRoutes, type WebRoutesDependencies } from './web-routes.ts';

/** The dependencies of all groups of routes. */
export type ApiDependencies = NodeRoutesDependencies &
  ClusterRoutesDependencies &
  InstanceRoutesDependencies &
  BootRoutesDependencies &
  ChannelRoutesDependencies &
  ImageRoutesDependencies &
  OsRoutesDependencies &
  ObjectRoutesDependencies &
  MoveRoutesDependencies &
  EventRoutesDependencies &
  WebRoutesDependencies &
  JobRoutesDependencies & { readonly version: string };

/** Implements every endpoint of `shared/contract/endpoints.ts`. */
export function createApiRoutes(dependencies: ApiDependencies): ApiHandlers {
  return {
    ...nodeRoutes(dependencies),
    ...clusterRoutes(dependencies),
    ...instanceRoutes(dependencies),
    ...bootRoutes(dependencies),
    ...channelRoutes(dependencies),
    ...imageRoutes(dependencies),
    ...osRoutes(dependencies),
    ...objectRoutes(dependencies),
    ...moveRoutes(dependencies),
    ...jobRoutes(dependencies),
    ...eventRoutes(dependencies),
    ...webRoutes(dependencies),
    'GET /v1/openapi.json': () => JSON.stringify(describeApi(dependencies.version)),
  };
}
