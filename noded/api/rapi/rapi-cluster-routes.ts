import { DEFAULT_LINK } from '#shared/contract/machine-parameters.ts';
import { arch } from 'node:os';
import { diskTemplate } from '#shared/contract/disk-template.ts';
import { isOffered, listVariants } from '#shared/contract/os-variants.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import { DEFAULT_BACKEND_PARAMETERS } from '../../instances/record/plan-record.ts';
import { describeAllOs } from '../../provision/os/describe-os.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { pickFields, toSeconds } from './fields.ts';
import { nodeFields, type NodeFacts } from './node-fields.ts';
import { RapiFailure } from './rapi-failure.ts';
import { isSet, submitRoute, type RapiRoute, type Submit } from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';

const RAPI_VERSION = 2;
/** What clients may ask for beyond the first version of a request. */
const FEATURES = ['instance-create-reqv1', 'instance-reinstall-reqv1'];
/** Newest API of OS definitions. */
const OS_API_VERSION = 20;

export interface NodeFactsSources {
  readonly overview: Pick<Overview, 'nodes'>;
  readonly index: Pick<InstanceIndex, 'list'>;
}
export interface RapiClusterDependencies extends NodeFactsSources {
  readonly version: string;
  readonly disksDir: string;
  readonly clusters: Pick<ClusterRepository, 'load' | 'loadOs' | 'loadProfile' | 'loadVariants'>;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly osRegistry: Pick<OsRegistry, 'list'>;
  readonly submit: Submit;
}

/** The cluster as a whole: what this is, its nodes and its OS definitions. */
export function clusterRoutes(dependencies: RapiClusterDependencies): readonly RapiRoute[] {
  const { submit } = dependencies;
  const get = (path: string, handle: RapiRoute['handle']): RapiRoute => {
    return { method: 'GET', path, role: 'read', handle };
  };
  return [
    get('/', () => null),
    get('/version', () => RAPI_VERSION),
    get('/2', () => null),
    get('/2/features', () => FEATURES),
    get('/2/info', ({ user }) => describeCluster(dependencies, user)),
    get('/2/os', ({ query }) => listOs(dependencies, isSet(query, 'bulk'))),
    get('/2/nodes', async ({ query, user }) => {
      if (isSet(query, 'bulk'))
        return (await loadNodes(dependencies, user)).map((node) => pickFields(nodeFields, node));
      const names = await dependencies.nodes.names();
      return names.toSorted().map((id) => ({ id, uri: `/2/nodes/${id}` }));
    }),
    get('/2/nodes/:name', async ({ params, user }) => {
      const node = (await loadNodes(dependencies, user)).find(
        ({ name }) => name === params['name'],
      );
      if (node === undefined) throw new RapiFailure(404, `there is no node '${params['name']}'`);
      return pickFields(nodeFields, node);
    }),
    get('/2/tags', async () => (await dependencies.clusters.load()).tags ?? []),
    submitRoute(submit, 'PUT', '/2/tags', ({ query }) => {
      return { opcode: 'CLUSTER_SET_PARAMS', addTags: query.getAll('tag') };
    }),
    submitRoute(submit, 'DELETE', '/2/tags', ({ query }) => {
      return { opcode: 'CLUSTER_SET_PARAMS', removeTags: query.getAll('tag') };
    }),
  ];
}

/**
 * Every node of the cluster, with those of its instances that the user sees; of one that does not
 * answer, what the store has.
 */
export async function loadNodes(
  { overview, index }: NodeFactsSources,
  { scope }: RapiUser,
): Promise<readonly NodeFacts[]> {
  const [nodes, records] = await Promise.all([overview.nodes(), index.list()]);
  const seen = records.filter((record) => isWithin(scope, record));
  const byNode = Map.groupBy(seen, ({ primaryNode }) => primaryNode);
  return nodes.map((node) => ({
    name: node.name,
    flags: node.flags,
    // What the host has, and has left, tells of the others on it.
    capacity: 'silent' in node || scope !== null ? null : node,
    // An embedded store has what its node made under other names too.
    instanceNames: (nodes.length === 1 ? seen : (byNode.get(node.name) ?? [])).map(
      ({ name }) => name,
    ),
  }));
}

async function describeCluster(
  { clusters, nodes, disksDir, version }: RapiClusterDependencies,
  { scope }: RapiUser,
): Promise<Record<string, unknown>> {
  const cluster = await clusters.load();
  const [master = null] = await nodes.names();
  const { memoryMiB, vcpus } = DEFAULT_BACKEND_PARAMETERS;
  return {
    name: cluster.name,
    uuid: cluster.uuid,
    master,
    software_version: version,
    vcs_version: `gnt ${version}`,
    os_api_version: OS_API_VERSION,
    architecture: ['64bits', arch() === 'arm64' ? 'aarch64' : 'x86_64'],
    default_hypervisor: 'kvm',
    enabled_hypervisors: ['kvm'],
    enabled_disk_templates: diskTemplate.options.filter(
      (one) =>
        (one !== 'sharedfile' || cluster.sharedFileStorageDir !== undefined) &&
        (one !== 'plain' || cluster.vgName !== undefined) &&
        (one !== 'zfs' || cluster.zfsPool !== undefined),
    ),
    volume_group_name: cluster.vgName?.split('/')[0] ?? null,
    file_storage_dir: scope === null ? disksDir : null,
    shared_file_storage_dir: scope === null ? (cluster.sharedFileStorageDir ?? null) : null,
    beparams: { default: { maxmem: memoryMiB, minmem: memoryMiB, memory: memoryMiB, vcpus } },
    hvparams: { kvm: {} },
    nicparams: { default: { mode: 'bridged', link: DEFAULT_LINK } },
    ndparams: {},
    os_hvp: {},
    osparams: {},
    candidate_pool_size: 1,
    ctime: toSeconds(cluster.createdAtMs),
    tags: cluster.tags ?? [],
  };
}

/**
 * Lists OS definitions as names with their variants, or whole; hidden, blacklisted and broken ones
 * are in the latter only.
 */
async function listOs(
  { osRegistry, clusters }: RapiClusterDependencies,
  isBulk: boolean,
): Promise<unknown> {
  const found = await describeAllOs(osRegistry, clusters);
  if (!isBulk)
    return found
      .flatMap(listVariants)
      .filter(isOffered)
      .map(({ listed }) => listed);
  return found.map(
    ({ name, valid, variants, parameters, apiVersions, hidden, blacklisted, trusted }) => ({
      ...{ name, valid, variants, parameters, api_versions: apiVersions },
      ...{ hidden, blacklisted, trusted },
    }),
  );
}
