import { type AppError, isAppError } from '#shared/errors/app-error.ts';
import {
  type Here,
  refuseForeign,
  refuseScanned,
} from '../../storage/drivers/volumes/check-group.ts';
import { findPools, type ThinPool } from '../../storage/drivers/volumes/thin-pools.ts';
import { findOwn, type OwnVolume } from '../../storage/drivers/volumes/volume-names.ts';
import type {
  VolumeErrors,
  VolumeGroup,
  VolumeSystem,
} from '../../storage/drivers/volumes/volume-system.ts';

/** What doctor is told of LVM, or of ZFS. */
export interface VolumeFacts {
  /** Null when it is not installed, or does not answer. */
  readonly groups: readonly VolumeGroup[] | null;
  readonly own: readonly OwnVolume[];
  readonly pools: readonly ThinPool[];
  /** What is against volumes on this host, with what to do. */
  readonly problem: AppError | null;
}

/**
 * Asks everything at once, so that one that hangs is waited for once, and hides no other finding.
 * @param place the cluster's, for new disks
 */
export async function lookAtVolumes(
  system: Pick<VolumeSystem, 'listGroups' | 'listVolumes' | 'isScanned' | 'parsePlace' | 'errors'>,
  place: string | undefined,
  here: Here,
): Promise<VolumeFacts> {
  try {
    const [groups, volumes, isScanned] = await Promise.all([
      system.listGroups(),
      system.listVolumes(),
      system.isScanned(),
    ]);
    const own = findOwn(volumes);
    const used = new Set([
      ...(place === undefined ? [] : [system.parsePlace(place).group]),
      ...own.flatMap(({ group, node }) => (node === null || here.owns(node) ? [group] : [])),
    ]);
    const pools = findPools(volumes);
    return {
      groups,
      own,
      pools,
      problem:
        used.size === 0 ? null : judge(used, own, { isScanned, here, errors: system.errors }),
    };
  } catch (error) {
    if (!isAppError(error)) throw error;
    // It may be missing where nobody wants it.
    const isMissing = error.code === 'HOST_PREREQUISITE';
    return { groups: null, own: [], pools: [], problem: isMissing ? null : error };
  }
}

function judge(
  used: ReadonlySet<string>,
  own: readonly OwnVolume[],
  {
    isScanned,
    here,
    errors,
  }: { readonly isScanned: boolean; readonly here: Here; readonly errors: VolumeErrors },
): AppError | null {
  try {
    refuseScanned(isScanned, errors);
    refuseForeign(used, own, here, errors);
    return null;
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
}
