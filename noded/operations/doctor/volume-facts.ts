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

/** State of LVM or ZFS on this node. */
export interface VolumeFacts {
  /** Null if it is not installed or does not answer. */
  readonly groups: readonly VolumeGroup[] | null;
  readonly own: readonly OwnVolume[];
  readonly pools: readonly ThinPool[];
  /** Why volumes cannot be used on this host, with a remedy. */
  readonly problem: AppError | null;
}

/**
 * Asks all questions at once, so that a hanging command is waited for only once.
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
    // A missing package is a problem only if a setting needs it.
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
