import type { BootEnv } from '#shared/contract/boot-env.ts';
import {
  type BootEnvInfo,
  type BootPlanInfo,
  installsSystem,
} from '#shared/contract/boot-objects.ts';
import type { objectEndpoints } from '#shared/contract/endpoints.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { NetworkInfo, NetworkRecord } from '#shared/contract/network.ts';
import type { ProfileInfo, ProfileRecord } from '#shared/contract/profile.ts';
import { redactAll } from '../../instances/describe-instance.ts';
import type { BootArchives } from '../../netboot/archives.ts';
import { compareAddresses, countFree, sizeOf } from '../../records/address-pool.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { TakenAddress } from '../../records/network-repository.ts';
import type { Handlers } from './handlers.ts';

export interface ObjectRoutesDependencies {
  readonly clusters: Pick<
    ClusterRepository,
    | 'listProfiles'
    | 'listNetworks'
    | 'listTakenAddresses'
    | 'listBootEnvs'
    | 'listTemplates'
    | 'listParams'
  >;
  readonly instances: Pick<InstanceRepository, 'findByName' | 'expandName'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly archives: Pick<BootArchives, 'list'>;
  /** Plans the boot files of an instance. @throws AppError BOOTENV_* */
  readonly planBoot: (instance: InstanceRecord, bootEnv: string | null) => Promise<BootPlanInfo>;
}

/** Implements profiles, networks and boot environments, which instances refer to. */
export function objectRoutes(
  dependencies: ObjectRoutesDependencies,
): Handlers<typeof objectEndpoints> {
  const { clusters, instances, index, archives, planBoot } = dependencies;
  return {
    'GET /v1/profiles': async () => {
      const [profiles, all] = await Promise.all([clusters.listProfiles(), index.list()]);
      return describeProfiles(profiles, all);
    },
    'GET /v1/networks': () => listNetworkInfos(dependencies),
    'GET /v1/bootenvs': async () => {
      const all = await index.list();
      const bootEnvs = await clusters.listBootEnvs();
      return bootEnvs.map((bootEnv) => describeBootEnv(bootEnv, all));
    },
    'GET /v1/boot-templates': async () =>
      (await clusters.listTemplates()).map(({ ID, Contents }) => ({ id: ID, contents: Contents })),
    'GET /v1/boot-params': async () =>
      (await clusters.listParams()).map(({ Name, Schema }) => ({ name: Name, schema: Schema })),
    'GET /v1/boot-archives': async () => {
      const [opened, bootEnvs] = await Promise.all([archives.list(), clusters.listBootEnvs()]);
      return opened.map((archive) => ({
        ...archive,
        bootEnvs: bootEnvs
          .filter(({ OS }) => OS.SupportedArchitectures.amd64.IsoFile === archive.isoFile)
          .map(({ Name }) => Name),
      }));
    },
    'GET /v1/instances/{name}/boot-plan': async ({ params, query }) => {
      const instance = await instances.findByName(await instances.expandName(params.name));
      return planBoot(instance, query.bootenv ?? null);
    },
  };
}

/** @param instances visible ones, which are listed as users */
export function describeProfiles(
  profiles: readonly ProfileRecord[],
  instances: readonly Pick<IndexedInstance, 'name' | 'profiles'>[],
): ProfileInfo[] {
  const users = new Map<string, string[]>();
  for (const instance of instances)
    for (const profile of instance.profiles) users.getOrInsert(profile, []).push(instance.name);
  return profiles.map((profile) => describeProfile(profile, users.get(profile.name) ?? []));
}

function describeProfile(profile: ProfileRecord, instances: string[]): ProfileInfo {
  const { name, osParameters, osParametersPrivate } = profile;
  const redacted = redactAll(osParametersPrivate);
  return { name, osParameters, osParametersPrivate: redacted, instances };
}

export async function listNetworkInfos({
  clusters,
  index,
}: {
  readonly clusters: Pick<ClusterRepository, 'listNetworks' | 'listTakenAddresses'>;
  readonly index: Pick<InstanceIndex, 'list'>;
}): Promise<NetworkInfo[]> {
  const [networks, taken, instances] = await Promise.all([
    clusters.listNetworks(),
    clusters.listTakenAddresses(),
    index.list(),
  ]);
  const names = new Map(instances.map(({ uuid, name }) => [uuid, name] as const));
  return networks.map((network) => describeNetwork(network, taken, names));
}

function describeNetwork(
  { schema, ...network }: NetworkRecord,
  taken: readonly TakenAddress[],
  names: ReadonlyMap<string, string>,
): NetworkInfo {
  void schema;
  const own = taken.filter((one) => one.network === network.name);
  return {
    ...network,
    size: sizeOf(network),
    free: countFree(network, new Set(own.map(({ ip }) => ip))),
    addresses: own
      .map(({ ip, uuid }) => ({ ip, instance: names.get(uuid) ?? uuid }))
      .sort((one, other) => compareAddresses(one.ip, other.ip)),
  };
}

/** @param instances visible ones, which are listed as users */
export function describeBootEnv(
  bootEnv: BootEnv,
  instances: readonly Pick<IndexedInstance, 'name' | 'bootEnv'>[],
): BootEnvInfo {
  const { Name, Description, OS, Templates, RequiredParams } = bootEnv;
  const { amd64 } = OS.SupportedArchitectures;
  return {
    name: Name,
    description: Description,
    osName: OS.Name,
    installs: installsSystem(Name),
    isoFile: amd64.IsoFile,
    isoUrl: amd64.IsoUrl,
    templates: Templates.flatMap(({ ID }) => (ID === '' ? [] : [ID])),
    requiredParams: [...RequiredParams],
    instances: instances.filter((one) => one.bootEnv === Name).map(({ name }) => name),
    document: bootEnv,
  };
}
