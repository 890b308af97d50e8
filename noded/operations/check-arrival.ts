import type { InstanceRecord } from '#shared/contract/instance.ts';
import { loadAppliance } from '../instances/record/choose-appliance.ts';
import { noSecrets } from '../instances/parameters/job-secrets.ts';
import { checkPackage } from './check-install.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { requireAppliance } from './require-appliance.ts';

/**
 * Checks that this node has everything that an instance of another node names. A missing file would
 * otherwise show only at its next start or reinstallation, which may be years away.
 * @throws AppError naming the missing object
 */
export async function checkArrival(
  instance: InstanceRecord,
  signal: AbortSignal,
  dependencies: Pick<
    OperationDependencies,
    'runner' | 'osRegistry' | 'images' | 'applianceFiles' | 'clusters' | 'bootViews' | 'disks'
  >,
): Promise<void> {
  const { runner, osRegistry, images, clusters, bootViews, disks } = dependencies;
  const { osType, osImage, personalizationPackage } = instance;
  await runner.checkRunnable(instance);
  if (osType !== null) await osRegistry.find(osType, { forceVariant: true });
  if (osImage !== null) await images.check(osImage);
  if (personalizationPackage !== null) await checkPackage(personalizationPackage);
  await requireAppliance(await loadAppliance(instance, clusters), dependencies);
  await bootViews.check(instance, noSecrets, signal);
  await disks.checkSizes(instance.disks, instance);
}
