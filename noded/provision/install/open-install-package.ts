import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { redactSource } from '#shared/contract/redact-source.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { type OpenedPackage, openPackage } from '../../content/downloads/package-source.ts';
import type { JobSecrets } from '../../instances/parameters/job-secrets.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { requireDigest } from '../../content/downloads/require-digest.ts';

/** The parts of an installation that are needed to open its package. */
export interface PackageOwner {
  readonly instance: Pick<InstanceRecord, 'personalizationPackage'>;
  readonly secrets: JobSecrets;
  /** SHA-256 of the checked package, in hex. Other content is refused. */
  readonly packageSha256?: string | undefined;
}

/**
 * Opens the package of an installation with its login; undefined without a package.
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
  return async ({ instance, secrets, packageSha256 }, signal) => {
    if (instance.personalizationPackage === null) return undefined;
    const { packageUser, packagePassword } = secrets;
    const opened = await openPackage(instance.personalizationPackage, {
      signal,
      netrcFile,
      limits: downloadLimitsOf(await clusters.load()),
      user: packageUser,
      password: packagePassword,
    });
    if (packageSha256 === undefined) return opened;
    const shown = redactSource(instance.personalizationPackage);
    return { ...opened, stream: requireDigest(opened.stream, packageSha256, shown) };
  };
}
