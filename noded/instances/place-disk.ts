import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Place = Pick<InstanceDisk, 'vg' | 'pool' | 'dataset'>;

/** Where the cluster has new volumes made. */
export interface VolumePlaces {
  /** Written as GROUP or GROUP/POOL. */
  readonly vgName?: string | undefined;
  readonly zfsPool?: string | undefined;
}

/**
 * The volume group and thin pool, or ZFS dataset, of a new disk whose template needs one. Pure.
 * @throws AppError NOT_SUPPORTED
 */
export function placeOf(
  template: InstanceRecord['diskTemplate'],
  { vgName, zfsPool }: VolumePlaces,
): Place {
  if (template === 'zfs') {
    if (zfsPool !== undefined) return { dataset: zfsPool };
    throw new AppError('NOT_SUPPORTED', 'the cluster has no ZFS pool for disks', {
      hint: 'gnt-cluster modify --zfs-pool POOL names one, POOL/DATASET a dataset in it; zpool list and zfs list tell those of a node',
    });
  }
  if (template !== 'plain') return {};
  if (vgName === undefined) {
    throw new AppError('NOT_SUPPORTED', 'the cluster has no volume group for disks', {
      hint: 'gnt-cluster modify --vg-name NAME names one, NAME/POOL a thin pool in it; vgs and lvs list those of a node',
    });
  }
  const [vg = '', pool] = vgName.split('/');
  return { vg, ...(pool !== undefined && { pool }) };
}

/** The next disk's place, beside the first of the instance; undefined where that has none. Pure. */
export function placeBeside([first]: readonly Place[]): VolumePlaces | undefined {
  if (first?.dataset !== undefined) return { zfsPool: first.dataset };
  if (first?.vg === undefined) return undefined;
  return { vgName: [first.vg, first.pool].filter(Boolean).join('/') };
}
