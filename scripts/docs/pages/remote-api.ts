import { z } from 'zod';
import { createRapiRoutes, type RapiDependencies } from '../../../noded/api/rapi/rapi-server.ts';
import type { RapiRoute } from '../../../noded/api/rapi/rapi-route.ts';
import {
  createRequest,
  modifyRequest,
  reinstallRequest,
} from '../../../noded/api/rapi/instance-bodies.ts';
import {
  type Block,
  bullets,
  code,
  heading,
  paragraph,
  terms,
} from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';
import { standIn } from '../stand-in.ts';

/** Purpose of each resource. A resource without an entry fails the generator. */
const RESOURCES: Readonly<Record<string, string>> = {
  'GET /': 'Returns null. Needs no user.',
  'GET /version': 'Returns the version of the API: 2. Needs no user.',
  'GET /2': 'Returns null.',
  'GET /2/features': 'Lists the supported request versions.',
  'GET /2/info': 'Describes the cluster.',
  'GET /2/os': 'Lists OS definitions with variants. `bulk=1` returns all details.',
  'GET /2/nodes': 'Lists nodes. `bulk=1` returns all fields.',
  'GET /2/nodes/:name': 'Describes one node.',
  'GET /2/nodes/:name/role': 'Returns the role of a node: `master`, `drained` or `offline`.',
  'PUT /2/nodes/:name/role': 'Sets the role of a node: `regular`, `drained` or `offline`.',
  'POST /2/nodes/:name/modify': 'Changes `drained` and `offline` of a node.',
  'GET /2/nodes/:name/tags': 'Returns an empty list: nodes have no tags.',
  'GET /2/groups': 'Lists the only node group, `default`. `bulk=1` returns all fields.',
  'GET /2/groups/:name': 'Describes the node group `default`.',
  'GET /2/groups/:name/tags': 'Returns an empty list: the group has no tags.',
  'GET /2/tags': 'Lists the tags of the cluster.',
  'PUT /2/tags': 'Adds the tags of the query (`tag=...`) to the cluster.',
  'DELETE /2/tags': 'Removes the tags of the query from the cluster.',
  'GET /2/instances': 'Lists instances. `bulk=1` returns all fields.',
  'GET /2/orphans': 'Lists orphans: running instances without a record. Not in Ganeti.',
  'GET /2/instances/:name': 'Describes one instance.',
  'GET /2/instances/:name/tags': 'Lists the tags of an instance.',
  'GET /2/instances/:name/console': 'Tells how to reach the console of a running instance.',
  'GET /2/instances/:name/info': 'Starts a job that returns all details of an instance.',
  'POST /2/instances': 'Creates an instance.',
  'DELETE /2/instances/:name': 'Removes an instance and its disks.',
  'POST /2/instances/:name/reinstall': 'Stops an instance and reinstalls it.',
  'PUT /2/instances/:name/startup': 'Starts an instance.',
  'PUT /2/instances/:name/shutdown': 'Shuts an instance down.',
  'POST /2/instances/:name/reboot': 'Reboots an instance. `type` is `soft`, `hard` or `full`.',
  'PUT /2/instances/:name/modify': 'Changes parameters of an instance.',
  'PUT /2/instances/:name/adopt': 'Creates a record for an orphan. Not in Ganeti.',
  'PUT /2/instances/:name/migrate':
    'Migrates an instance to `target_node`, or to a node with room.',
  'PUT /2/instances/:name/failover':
    'Starts an instance of a node that is down on `target_node`, or on a node with room.',
  'PUT /2/instances/:name/export': 'Exports an instance to a directory of its node.',
  'PUT /2/instances/:name/rename': 'Renames an instance to `new_name`.',
  'POST /2/instances/:name/disk/:disk/grow': 'Enlarges a disk by `amount` MiB.',
  'PUT /2/instances/:name/tags': 'Adds the tags of the query to an instance.',
  'DELETE /2/instances/:name/tags': 'Removes the tags of the query from an instance.',
  'GET /2/bootenvs': 'Lists boot environments. Not in Ganeti.',
  'GET /2/bootenvs/:name': 'Describes one boot environment. Not in Ganeti.',
  'POST /2/bootenvs': 'Stores `bootenvs`, `templates`, `params` and `profiles`. Not in Ganeti.',
  'POST /2/bootenvs/:name/uploadiso': 'Fetches the archive from `source` or IsoUrl. Not in Ganeti.',
  'DELETE /2/bootenvs/:name': 'Removes a boot environment that no instance uses. Not in Ganeti.',
  'GET /2/profiles': 'Lists profiles. Not in Ganeti.',
  'GET /2/profiles/:name': 'Describes one profile. Not in Ganeti.',
  'PUT /2/profiles/:name': 'Changes `osparams` and `osparams_private` of a profile. Not in Ganeti.',
  'DELETE /2/profiles/:name': 'Removes a profile that no instance uses. Not in Ganeti.',
  'GET /2/networks': 'Lists networks. `bulk=1` returns all fields.',
  'GET /2/networks/:name': 'Describes one network.',
  'GET /2/networks/:name/tags': 'Lists the tags of a network.',
  'POST /2/networks': 'Adds a network.',
  'PUT /2/networks/:name/modify': 'Changes a network.',
  'PUT /2/networks/:name/connect': 'Connects nodes to a network. `network_mode`: `nat`, `bridged`.',
  'PUT /2/networks/:name/disconnect': 'Disconnects nodes from a network.',
  'PUT /2/networks/:name/tags': 'Adds the tags of the query to a network.',
  'DELETE /2/networks/:name/tags': 'Removes the tags of the query from a network.',
  'DELETE /2/networks/:name': 'Removes a network that no NIC uses.',
  'GET /2/jobs': 'Lists jobs. `bulk=1` returns all fields.',
  'GET /2/jobs/:id': 'Describes one job.',
  'DELETE /2/jobs/:id': 'Cancels a job.',
  'GET /2/jobs/:id/wait': 'Waits until a job changes.',
  'GET /2/query/:resource': 'Queries instances, nodes, groups or jobs by `fields`.',
  'PUT /2/query/:resource': 'The same with a filter in the body.',
  'GET /2/query/:resource/fields': 'Lists the fields of a query.',
};

export function readRapiResources(): readonly RapiRoute[] {
  return createRapiRoutes(standIn<RapiDependencies>());
}

/** @throws Error naming the resource */
export function describeResource(resource: string): string {
  const text = RESOURCES[resource];
  if (text === undefined) throw new Error(`scripts/docs/pages/remote-api.ts lacks ${resource}`);
  return text;
}

export function remoteApiPage(): DocumentedPage {
  const all = readRapiResources();
  const routes = all.filter(({ refusal }) => refusal === undefined);
  return documented('remote-api.md', 'Remote API', {
    name: 'gnt-rapi',
    section: 7,
    purpose: "resources of the remote API, and differences from Ganeti's",
    blocks: [
      heading('Description'),
      paragraph(
        '`gnt-noded --rapi HOST:PORT` serves version 2 of the remote API of Ganeti over TLS. ' +
          'Users are in a file, see `gnt-rapi-users(5)`. The usual port is 5080.',
      ),
      code(
        'curl --cacert rapi.pem -u deploy https://node1.example.com:5080/2/instances?bulk=1',
        'sh',
      ),
      paragraph(
        'A change returns the number of its job. `dry-run=1` in the query checks a change without ' +
          'carrying it out.',
      ),
      heading('Read access'),
      listResources(routes, 'read'),
      heading('Write access'),
      paragraph('These resources need a user with the option `write`.'),
      listResources(routes, 'write'),
      heading('Request bodies'),
      ...describeBody('POST /2/instances', createRequest),
      ...describeBody('POST /2/instances/NAME/reinstall', reinstallRequest),
      ...describeBody('PUT /2/instances/NAME/modify', modifyRequest),
      heading('Differences from Ganeti'),
      bullets([
        'Parameters that have no effect here are refused by name, except for parameters that clients of Ganeti always send.',
        'All nodes belong to the group `default`. Networks name nodes by `node_names`.',
        'ZFS is the disk template `zfs`, which programs of Ganeti cannot parse.',
        '`osparams["os-image"]` is the image, as in Ganeti. `os_image` is the same.',
        '`iallocator` of a new instance can only be `hail` or absent, because placement chooses the node.',
        '`modify` takes the actions `add`, `modify` and `remove` of disks and NICs, not `attach` and `detach`.',
        'Private and secret values are never part of an answer.',
        'A file of a node must be below a folder of `gnt-cluster modify --remote-folders`.',
        'A URL must lead to a public address or to a host of `gnt-cluster modify --remote-hosts`.',
        'Reading needs a user, except for `/` and `/version`.',
      ]),
      heading('Refused resources'),
      paragraph('These resources of Ganeti 3.0 answer 501 with the reason.'),
      terms(
        all.flatMap(({ method, path, refusal }) =>
          refusal === undefined ? [] : [[nameOf({ method, path }), asSentence(refusal)]],
        ),
      ),
      heading('Limits'),
      terms([
        ['Unfinished jobs of a user', '50.'],
        ['Wrong passwords', '10 per minute from one IPv4 address or one IPv6 /64 network.'],
        ['Connections', '128.'],
      ]),
    ],
    seeAlso: ['gnt-noded(8)', 'gnt-rapi-users(5)', 'gnt-cluster-modify(8)'],
  });
}

function listResources(routes: readonly RapiRoute[], role: RapiRoute['role']): Block {
  return terms(
    routes
      .filter((route) => route.role === role)
      .map((route) => [nameOf(route), describeResource(`${route.method} ${route.path}`)]),
  );
}

function nameOf({ method, path }: Pick<RapiRoute, 'method' | 'path'>): string {
  return `${method} ${path.replaceAll(/:(\w+)/g, (_, name: string) => name.toUpperCase())}`;
}

function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function describeBody(resource: string, { shape }: z.ZodObject): readonly Block[] {
  const namesOf = (kind: Kind): string =>
    Object.entries(shape)
      .filter(([, type]) => kindOf(type) === kind)
      .map(([name]) => `\`${name}\``)
      .join(', ');
  return [
    heading(resource, 2),
    paragraph(`Parameters: ${namesOf('used')}.`),
    paragraph(`Accepted without an effect: ${namesOf('ignored')}.`),
    paragraph(`Accepted only with Ganeti's default: ${namesOf('default')}.`),
  ];
}

type Kind = 'used' | 'ignored' | 'default';

function kindOf(type: unknown): Kind {
  if (!(type instanceof z.ZodOptional)) return 'used';
  const inner = type.unwrap();
  if (inner instanceof z.ZodUnknown) return 'ignored';
  const isDefaultOnly =
    (inner instanceof z.ZodLiteral && inner.values.has(null)) ||
    (inner instanceof z.ZodObject && Object.keys(inner.shape).length === 0);
  return isDefaultOnly ? 'default' : 'used';
}
