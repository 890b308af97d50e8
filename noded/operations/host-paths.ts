import { FILE_PARAMETERS } from '#shared/contract/parameter-keys.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseConfinedPath } from '../host/open-host-file.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';

type NamesFiles = Pick<
  InstanceRecord,
  'osImage' | 'personalizationPackage' | 'hvparams' | 'installParameters'
>;
type Clusters = Pick<ClusterRepository, 'load'>;

/**
 * Refuses paths that came from the remote API unless the operator allows their folder.
 * @throws AppError PATH_NOT_ALLOWED
 */
export function checkHostPaths(instance: NamesFiles, clusters: Clusters): Promise<void> {
  const { osImage, personalizationPackage, hvparams, installParameters } = instance;
  const media = [hvparams, installParameters].flatMap(bootPaths);
  return checkPaths([osImage, personalizationPackage, ...media], clusters);
}

/**
 * Checks only the files that a start opens, without those of an installation.
 * @throws AppError PATH_NOT_ALLOWED
 */
export function checkHostPathsOfRun(
  { hvparams }: Pick<NamesFiles, 'hvparams'>,
  clusters: Clusters,
): Promise<void> {
  return checkPaths(bootPaths(hvparams), clusters);
}

function bootPaths(parameters: HvParameters): readonly (string | undefined)[] {
  return FILE_PARAMETERS.map((key) => parameters[key]);
}

async function checkPaths(
  paths: readonly (string | null | undefined)[],
  clusters: Clusters,
): Promise<void> {
  let folders: readonly string[] | undefined;
  for (const path of paths) {
    const confined = path?.startsWith('/') === true ? parseConfinedPath(path) : undefined;
    if (path === undefined || path === null || confined === undefined) continue;
    folders ??= (await clusters.load()).remoteFolders ?? [];
    if (!folders.includes(confined.folder)) throw notAllowed(path);
  }
}

export function notAllowed(path: string): AppError {
  return new AppError(
    'PATH_NOT_ALLOWED',
    `'${path}' is not below a folder whose files the remote API may name`,
    {
      details: { path },
      hint: 'An operator allows folders with gnt-cluster modify --remote-folders DIR,…; name a file by its plain path.',
    },
  );
}
