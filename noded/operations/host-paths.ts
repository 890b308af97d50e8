import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseConfinedPath } from '../host/open-host-file.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';

type NamesFiles = Pick<
  InstanceRecord,
  'osImage' | 'personalizationPackage' | 'hvparams' | 'installParameters'
>;

/**
 * A path that came from the remote API counts as long as the operator names its folder.
 * @throws AppError PATH_NOT_ALLOWED
 */
export async function checkHostPaths(
  { osImage, personalizationPackage, hvparams, installParameters }: NamesFiles,
  clusters: Pick<ClusterRepository, 'load'>,
): Promise<void> {
  const paths = [hvparams, installParameters].flatMap((parameters) => [
    parameters.cdrom_image_path,
    parameters.kernel_path,
    parameters.initrd_path,
  ]);
  let folders: readonly string[] | undefined;
  for (const path of [osImage, personalizationPackage, ...paths]) {
    const confined = path?.startsWith('/') === true ? parseConfinedPath(path) : undefined;
    if (path === undefined || path === null || confined === undefined) continue;
    folders ??= (await clusters.load()).remoteFolders ?? [];
    if (!folders.includes(confined.folder)) throw notAllowed(path);
  }
}

export function notAllowed(path: string): AppError {
  return new AppError(
    'PATH_NOT_ALLOWED',
    `'${path}' is below no folder that the remote API may name files of`,
    {
      details: { path },
      hint: 'the operator names folders with: gnt-cluster modify --remote-folders DIR,…; a file is named by its plain path',
    },
  );
}
