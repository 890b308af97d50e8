import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { namesInstance } from '../../jobs/opcode-traits.ts';
import type { AnyApiRoute, ApiRoutes } from './api-route.ts';

/** Routes that one node asks another for, beside those of an instance, which are forwarded. */
const PEER_ROUTES: ReadonlySet<string> = new Set([
  'GET /v1/node',
  'GET /v1/os',
  'GET /v1/os/{name}',
  'GET /v1/orphans',
  'GET /v1/own-instances',
  'GET /v1/machines/events',
  'GET /v1/jobs/{id}',
  'GET /v1/jobs/{id}/events',
  'POST /v1/jobs',
  'DELETE /v1/jobs/{id}',
  'POST /v1/cluster/key-steps',
]);
const PEER_PREFIXES = ['/v1/instances/{name}', '/v1/arrivals/'] as const;

/**
 * Returns the API as other nodes get it. They are refused routes and operations that no node asks
 * another for: these belong to operators on the node itself. Pure.
 */
export function narrowToPeers({ routes, streams }: ApiRoutes): ApiRoutes {
  return {
    routes: routes.map((route) => (isForPeers(route) ? narrowJobs(route) : refuse(route))),
    streams,
  };
}

export function isForPeers({ method, path }: Pick<AnyApiRoute, 'method' | 'path'>): boolean {
  return (
    PEER_ROUTES.has(`${method} ${path}`) || PEER_PREFIXES.some((prefix) => path.startsWith(prefix))
  );
}

/** Query and body of the route are not read. */
function refuse({ method, path, summary, answers }: AnyApiRoute): AnyApiRoute {
  const handle = (): never => {
    throw notForPeers(`${method} ${path}`);
  };
  return { method, path, summary, answers, handle };
}

function narrowJobs(route: AnyApiRoute): AnyApiRoute {
  if (route.method !== 'POST' || route.path !== '/v1/jobs') return route;
  return {
    ...route,
    handle: (request) => {
      // The route's own schema made it.
      const asked = request.body as Opcode;
      if (!namesInstance(asked)) throw notForPeers(asked.opcode);
      return route.handle(request);
    },
  };
}

function notForPeers(what: string): AppError {
  return new AppError('NOT_FOR_PEERS', `${what} is not available to other nodes`, {
    hint: 'Run the command on this node, or give all nodes the same release of gnt.',
  });
}
