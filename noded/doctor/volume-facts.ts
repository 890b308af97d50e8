import { type AppError, isAppError } from '#shared/errors/app-error.ts';
import { type Here, refuseForeign, refuseScanned } from '../disks/volumes/check-group.ts';
import type { Lvm, VolumeGroup } from '../disks/volumes/lvm.ts';
import { findPools, type ThinPool } from '../disks/volumes/thin-pools.ts';
import { findOwn, type OwnVolume } from '../disks/volumes/volume-names.ts';

/** What doctor is told of LVM. */
export interface VolumeFacts {
  /** Null: LVM is not installed, or does not answer. */
  readonly groups: readonly VolumeGroup[] | null;
  readonly own: readonly OwnVolume[];
  readonly pools: readonly ThinPool[];
  /** What is against volumes on this host, with what to do. */
  readonly problem: AppError | null;
}

/**
 * Asks LVM everything at once, so that one that hangs is waited for once, and hides no other finding.
 * @param vgName the cluster's, for new disks: GROUP or GROUP/POOL
 */
export async function lookAtVolumes(
  lvm: Pick<Lvm, 'listGroups' | 'listVolumes' | 'isScanned'>,
  vgName: string | undefined,
  here: Here,
): Promise<VolumeFacts> {
  try {
    const [groups, volumes, isScanned] = await Promise.all([
      lvm.listGroups(),
      lvm.listVolumes(),
      lvm.isScanned(),
    ]);
    const own = findOwn(volumes);
    const used = new Set([
      ...(vgName === undefined ? [] : [vgName.split('/')[0] ?? '']),
      ...own.flatMap(({ group, node }) => (node === null || here.owns(node) ? [group] : [])),
    ]);
    const pools = findPools(volumes);
    return {
      groups,
      own,
      pools,
      problem: used.size === 0 ? null : judge(used, own, isScanned, here),
    };
  } catch (error) {
    if (!isAppError(error)) throw error;
    // That there is none is of no concern where nobody wants it.
    const isMissing = error.code === 'HOST_PREREQUISITE';
    return { groups: null, own: [], pools: [], problem: isMissing ? null : error };
  }
}

function judge(
  used: ReadonlySet<string>,
  own: readonly OwnVolume[],
  isScanned: boolean,
  here: Here,
): AppError | null {
  try {
    refuseScanned(isScanned);
    refuseForeign(used, own, here);
    return null;
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
}
