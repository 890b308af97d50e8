import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Place = Pick<InstanceDisk, 'vg' | 'pool' | 'dataset'>;

/** Where the cluster creates new volumes. */
export interface VolumePlaces {
  /** Written as GROUP or GROUP/POOL. */
  readonly vgName?: string | undefined;
  readonly zfsPool?: string | undefined;
}

/**
 * Returns the volume group and thin pool, or the ZFS dataset, of a new disk whose template needs
 * one. Pure.
 * @throws AppError NOT_SUPPORTED
 */
export function placeOf(
  template: InstanceRecord['diskTemplate'],
  { vgName, zfsPool }: VolumePlaces,
): Place {
  if (template === 'zfs') {
    if (zfsPool !== undefined) return { dataset: zfsPool };
    throw new AppError('NOT_SUPPORTED', 'the cluster has no ZFS pool for disks', {
      hint: 'Name a pool or dataset of the nodes (zpool list, zfs list): gnt-cluster modify --zfs-pool POOL[/DATASET]',
    });
  }
  if (template !== 'plain') return {};
  if (vgName === undefined) {
    throw new AppError('NOT_SUPPORTED', 'the cluster has no volume group for disks', {
      hint: 'Name a volume group or thin pool of the nodes (vgs, lvs): gnt-cluster modify --vg-name GROUP[/POOL]',
    });
  }
  const [vg = '', pool] = vgName.split('/');
  return { vg, ...(pool !== undefined && { pool }) };
}

/**
 * Returns the place of an added disk: that of the first disk, or undefined if it has none. Pure.
 */
export function placeBeside([first]: readonly Place[]): VolumePlaces | undefined {
  if (first?.dataset !== undefined) return { zfsPool: first.dataset };
  if (first?.vg === undefined) return undefined;
  return { vgName: [first.vg, first.pool].filter(Boolean).join('/') };
}
