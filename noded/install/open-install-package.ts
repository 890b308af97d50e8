import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { type OpenedPackage, openPackage } from '../downloads/package-source.ts';
import type { JobSecrets } from '../instances/job-secrets.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';

/** What an installation needs to know to open its package. */
export interface PackageOwner {
  readonly instance: Pick<InstanceRecord, 'personalizationPackage'>;
  readonly secrets: JobSecrets;
}

/**
 * Opens the package of an installation with the login that it was given; undefined when it has
 * none.
 * @throws AppError of `openPackage`
 */
export type OpenInstallPackage = (
  owner: PackageOwner,
  signal: AbortSignal,
) => Promise<OpenedPackage | undefined>;

export function createOpenInstallPackage(
  clusters: Pick<ClusterRepository, 'load'>,
  netrcFile: string,
): OpenInstallPackage {
  return async ({ instance, secrets }, signal) => {
    if (instance.personalizationPackage === null) return undefined;
    const { packageUser, packagePassword } = secrets;
    return openPackage(instance.personalizationPackage, {
      signal,
      netrcFile,
      limits: downloadLimitsOf(await clusters.load()),
      ...(packageUser !== undefined && { user: packageUser }),
      ...(packagePassword !== undefined && { password: packagePassword }),
    });
  };
}
