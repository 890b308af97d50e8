import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Place = Pick<InstanceDisk, 'vg' | 'pool'>;

/**
 * In which volume group, and thin pool, a new disk is, where it is in one. Pure.
 * @param place the cluster's, as GROUP or GROUP/POOL
 * @throws AppError NOT_SUPPORTED
 */
export function placeOf(
  template: InstanceRecord['diskTemplate'],
  place: string | undefined,
): Place {
  if (template !== 'plain') return {};
  if (place === undefined) {
    throw new AppError('NOT_SUPPORTED', 'the cluster has no volume group for disks', {
      hint: 'gnt-cluster modify --vg-name NAME names one, NAME/POOL a thin pool in it; vgs and lvs list those of a node',
    });
  }
  const [vg = '', pool] = place.split('/');
  return { vg, ...(pool !== undefined && { pool }) };
}

/** Where the others of an instance are, there is the next one; undefined: nowhere yet. Pure. */
export function placeBeside([first]: readonly Place[]): string | undefined {
  return first?.vg === undefined ? undefined : [first.vg, first.pool].filter(Boolean).join('/');
}
