import { RapiFailure } from './rapi-failure.ts';
import type { RapiRoute } from './rapi-route.ts';

const GROUPS = 'the cluster has one node group, which all nodes belong to';
const NODE_TAGS = 'nodes have no tags';
const DISKS = 'a start of the instance activates its disks, a stop deactivates them';
const STORAGE = 'this cluster has no storage units; /2/nodes has the total and free space';
const FILTERS = 'this cluster has no job filters';
const STORE = 'all nodes read their configuration from the store; there is nothing to distribute';

/** Resources of Ganeti 3.0's API that have no counterpart here, with the reason. */
const REASONS: readonly (readonly [RapiRoute['method'], path: string, reason: string])[] = [
  ['POST', '/2/nodes/:name/powercycle', 'this API does not control the power of nodes'],
  [
    'POST',
    '/2/nodes/:name/evacuate',
    'evacuate by one job for each instance: PUT /2/instances/NAME/migrate; or run gnt-node evacuate',
  ],
  [
    'POST',
    '/2/nodes/:name/migrate',
    'migrate by one job for each instance: PUT /2/instances/NAME/migrate; or run gnt-node migrate',
  ],
  ['PUT', '/2/nodes/:name/tags', NODE_TAGS],
  ['DELETE', '/2/nodes/:name/tags', NODE_TAGS],
  ['GET', '/2/nodes/:name/storage', STORAGE],
  ['PUT', '/2/nodes/:name/storage/modify', STORAGE],
  ['PUT', '/2/nodes/:name/storage/repair', STORAGE],
  [
    'POST',
    '/2/instances/:name/replace-disks',
    'disks have no replica; PUT /2/instances/NAME/migrate takes them to another node',
  ],
  ['PUT', '/2/instances/:name/activate-disks', DISKS],
  ['PUT', '/2/instances/:name/deactivate-disks', DISKS],
  [
    'POST',
    '/2/instances/:name/recreate-disks',
    'disks are created with the instance; to empty them, reinstall the instance',
  ],
  [
    'PUT',
    '/2/instances/:name/prepare-export',
    'an instance is exported on its node only: PUT /2/instances/NAME/export',
  ],
  ['POST', '/2/groups', GROUPS],
  ['DELETE', '/2/groups/:name', GROUPS],
  ['PUT', '/2/groups/:name/modify', GROUPS],
  ['PUT', '/2/groups/:name/rename', GROUPS],
  ['PUT', '/2/groups/:name/assign-nodes', GROUPS],
  ['PUT', '/2/groups/:name/tags', GROUPS],
  ['DELETE', '/2/groups/:name/tags', GROUPS],
  [
    'POST',
    '/2/instances-multi-alloc',
    'create each instance by its own job: POST /2/instances; placement chooses the node',
  ],
  ['PUT', '/2/redistribute-config', STORE],
  ['PUT', '/2/modify', 'cluster settings are changed on a node: gnt-cluster modify'],
  ['GET', '/2/filters', FILTERS],
  ['POST', '/2/filters', FILTERS],
  ['GET', '/2/filters/:uuid', FILTERS],
  ['PUT', '/2/filters/:uuid', FILTERS],
  ['DELETE', '/2/filters/:uuid', FILTERS],
];

/** Returns routes that answer 501 with the reason, in Ganeti's error format. */
export function refusedRoutes(): readonly RapiRoute[] {
  return REASONS.map(([method, path, refusal]) => ({
    method,
    path,
    role: 'read',
    refusal,
    handle: () => {
      throw new RapiFailure(501, refusal);
    },
  }));
}
