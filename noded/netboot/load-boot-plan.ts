import type { ClusterRecord } from '#shared/contract/api.ts';
import type { BootParam, BootTemplate } from '#shared/contract/boot-env.ts';
import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { folderOf, isBelow } from '../content/downloads/mirror-url.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { BootPlan, BootPlanInput } from './boot-plan.ts';
import { planBootEnv } from './plan-boot-env.ts';

const BASE_URL = `http://${SERVICE_IPV4}/ganeti/latest/boot`;
const MIRRORS_URL = `http://${SERVICE_IPV4}/ganeti/latest/mirror`;

export interface BootSources {
  readonly clusters: Pick<
    ClusterRepository,
    'load' | 'loadBootEnv' | 'listBootEnvs' | 'listTemplates' | 'listParams'
  >;
  readonly archives: { find: BootPlanInput['archive'] };
}

export type BootOwner = Pick<InstanceRecord, 'name' | 'uuid' | 'channel' | 'profiles'>;

/** The parameters in force, and all layers, the lowest first. */
export type BootParameters = Pick<BootPlanInput, 'parameters' | 'layers'>;

/**
 * Plans the boot of an instance into a BootEnv, with the current store and the instance's
 * parameters.
 * @throws AppError BOOTENV_NOT_FOUND, BOOTENV_INVALID, BOOTENV_NO_SOURCE, BOOTENV_RENDER
 */
export async function loadBootPlan(
  name: string,
  { name: machineName, uuid, channel, profiles }: BootOwner,
  parameters: BootParameters,
  { clusters, archives }: BootSources,
): Promise<BootPlan> {
  const [cluster, bootEnv, templates, params] = await Promise.all([
    clusters.load(),
    clusters.loadBootEnv(name),
    clusters.listTemplates(),
    clusters.listParams(),
  ]);
  if (bootEnv === undefined) throw await bootEnvNotFound(name, clusters);
  return planBootEnv({
    machine: { name: machineName, uuid, mac: channel.mac, address: channel.ip, profiles },
    bootEnv,
    templates: byList(templatesOf, templates, ({ ID, Contents }) => [ID, Contents]),
    schemas: byList(schemasOf, params, (param) => [param.Name, param]),
    ...parameters,
    archive: (isoFile, sha256) => archives.find(isoFile, sha256),
    isAllowed: (url) => isAllowedRepository(url, cluster),
    mirrorUrl: (url) => urlOfMirror(url, cluster),
    packageMirrors: cluster.packageMirrors ?? {},
    baseUrl: BASE_URL,
  });
}

/** Maps by list: many plans share the lists of one read. */
const templatesOf = new WeakMap<readonly BootTemplate[], ReadonlyMap<string, string>>();
const schemasOf = new WeakMap<readonly BootParam[], ReadonlyMap<string, BootParam>>();

function byList<Item, Kept>(
  known: WeakMap<readonly Item[], ReadonlyMap<string, Kept>>,
  list: readonly Item[],
  entryOf: (item: Item) => readonly [string, Kept],
): ReadonlyMap<string, Kept> {
  const map = known.get(list) ?? new Map(list.map(entryOf));
  known.set(list, map);
  return map;
}

type Mirrors = Pick<ClusterRecord, 'packageMirrors'>;

export function isAllowedRepository(url: string, cluster: Mirrors): boolean {
  return findMirror(url, cluster) !== undefined;
}

/** Returns the channel's URL for a package mirror's URL; null for any other URL. Pure. */
function urlOfMirror(url: string, cluster: Mirrors): string | null {
  const [name, base] = findMirror(url, cluster) ?? [];
  if (name === undefined || base === undefined) return null;
  const folder = folderOf(base).pathname;
  return `${MIRRORS_URL}/${name}/${new URL(url).pathname.slice(folder.length)}`;
}

function findMirror(
  url: string,
  { packageMirrors = {} }: Mirrors,
): readonly [string, string] | undefined {
  if (!URL.canParse(url)) return undefined;
  return Object.entries(packageMirrors).find(([, base]) => isAllowedBelow(url, base));
}

function isAllowedBelow(url: string, base: string): boolean {
  return isBelow(new URL(url.endsWith('/') ? url : `${url}/`), base);
}

/** Returns an error that suggests the nearest name, `local` included, which has no definition. */
export async function bootEnvNotFound(
  name: string,
  clusters: Pick<ClusterRepository, 'listBootEnvs'>,
): Promise<AppError> {
  const known = (await clusters.listBootEnvs()).map(({ Name }) => Name);
  const near = suggest(name, [...known, LOCAL_BOOT_ENV]);
  return new AppError('BOOTENV_NOT_FOUND', `boot environment '${name}' does not exist`, {
    details: { name },
    hint: near === null ? 'List the boot environments: gnt-bootenv list' : `Did you mean ${near}?`,
  });
}
