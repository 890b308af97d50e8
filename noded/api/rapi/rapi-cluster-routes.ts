import { DEFAULT_LINK } from '#shared/contract/machine-parameters.ts';
import { arch } from 'node:os';
import { diskTemplate } from '#shared/contract/disk-template.ts';
import { isOffered, listVariants } from '#shared/contract/os-variants.ts';
import { NODE_PARAMETERS } from '#shared/contract/node-group.ts';
import { DEFAULT_BACKEND_PARAMETERS } from '../../instances/record/plan-record.ts';
import { describeAllOs } from '../../provision/os/describe-os.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { toSeconds } from './fields.ts';
import { INSTANCE_POLICY } from './group-fields.ts';
import { isSet, readRoute, submitRoute, type RapiRoute, type Submit } from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';

const RAPI_VERSION = 2;
/**
 * Features beyond the first version of a request. Without the last two, Ganeti's client refuses
 * these requests itself and does not show the reason of this API.
 */
const FEATURES = [
  'instance-create-reqv1',
  'instance-reinstall-reqv1',
  'node-migrate-reqv1',
  'node-evac-res1',
];
/** Newest API of OS definitions. */
const OS_API_VERSION = 20;

export interface RapiClusterDependencies {
  readonly version: string;
  readonly disksDir: string;
  readonly clusters: Pick<ClusterRepository, 'load' | 'loadOs' | 'loadProfile' | 'loadVariants'>;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly osRegistry: Pick<OsRegistry, 'list'>;
  readonly submit: Submit;
}

/** Returns the resources of the cluster as a whole and of its OS definitions. */
export function clusterRoutes(dependencies: RapiClusterDependencies): readonly RapiRoute[] {
  const { submit } = dependencies;
  return [
    readRoute('/', () => null),
    readRoute('/version', () => RAPI_VERSION),
    readRoute('/2', () => null),
    readRoute('/2/features', () => FEATURES),
    readRoute('/2/info', ({ user }) => describeCluster(dependencies, user)),
    readRoute('/2/os', ({ query }) => listOs(dependencies, isSet(query, 'bulk'))),
    readRoute('/2/tags', async () => (await dependencies.clusters.load()).tags ?? []),
    submitRoute(submit, 'PUT', '/2/tags', ({ query }) => {
      return { opcode: 'CLUSTER_SET_PARAMS', addTags: query.getAll('tag') };
    }),
    submitRoute(submit, 'DELETE', '/2/tags', ({ query }) => {
      return { opcode: 'CLUSTER_SET_PARAMS', removeTags: query.getAll('tag') };
    }),
  ];
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
    ndparams: NODE_PARAMETERS,
    ipolicy: INSTANCE_POLICY,
    os_hvp: {},
    osparams: {},
    candidate_pool_size: 1,
    ctime: toSeconds(cluster.createdAtMs),
    tags: cluster.tags ?? [],
  };
}

/**
 * Lists OS definitions as names with their variants, or in full. Hidden, blacklisted and broken
 * ones are only in the full list.
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
