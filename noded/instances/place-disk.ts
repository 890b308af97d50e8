import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * In which volume group a new disk is, where it is in one. Pure.
 * @throws AppError NOT_SUPPORTED
 */
export function placeOf(
  template: InstanceRecord['diskTemplate'],
  vgName: string | undefined,
): Pick<InstanceRecord['disks'][number], 'vg'> {
  if (template !== 'plain') return {};
  if (vgName !== undefined) return { vg: vgName };
  throw new AppError('NOT_SUPPORTED', 'the cluster has no volume group for disks', {
    hint: 'gnt-cluster modify --vg-name NAME names one; vgs lists those of a node',
  });
}
