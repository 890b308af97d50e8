import type { InstanceDisk } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { VolumeGroup } from './lvm.ts';
import type { OwnVolume } from './volume-names.ts';

export type WantedDisk = Pick<InstanceDisk, 'sizeBytes'> & Partial<InstanceDisk>;

/**
 * Whether disks can be made, or made larger, as they are wanted: what a volume has, nobody else has.
 * Pure.
 * @throws AppError HOST_PREREQUISITE, VALIDATION, DISK_SPACE
 */
export function checkGroups(
  disks: readonly WantedDisk[],
  groups: readonly VolumeGroup[],
  volumes: readonly OwnVolume[],
): void {
  for (const name of new Set(disks.map(({ vg }) => vg ?? ''))) {
    const group = requireGroup(name, groups);
    const own = disks.filter(({ vg }) => (vg ?? '') === name);
    for (const { sizeBytes } of own) refuseOddSize(sizeBytes, group);
    const neededBytes = own.reduce(
      (sum, disk) => sum + Math.max(0, disk.sizeBytes - presentBytes(disk, volumes)),
      0,
    );
    if (neededBytes > group.freeBytes) throw noRoom(neededBytes, group);
  }
}

/** @throws AppError HOST_PREREQUISITE */
export function requireGroup(name: string, groups: readonly VolumeGroup[]): VolumeGroup {
  const found = groups.find((group) => group.name === name);
  if (found !== undefined) return found;
  const there = groups.map((group) => group.name).join(', ') || 'none';
  throw new AppError('HOST_PREREQUISITE', `this node has no volume group '${name}'`, {
    details: { group: name },
    hint: `there are: ${there}; vgcreate ${name} DEVICE makes it, gnt-cluster modify --vg-name names another for new disks`,
  });
}

function presentBytes({ uuid }: WantedDisk, volumes: readonly OwnVolume[]): number {
  const found = volumes.find(({ disk, state }) => disk === uuid && state.kind === 'disk');
  return found?.sizeBytes ?? 0;
}

/** A guest sees all of a volume: one that is larger than its record says would be of two sizes. */
function refuseOddSize(sizeBytes: number, { name, extentBytes }: VolumeGroup): void {
  const rest = sizeBytes % extentBytes;
  if (rest === 0) return;
  const next = (sizeBytes - rest + extentBytes) / MIB;
  throw new AppError(
    'VALIDATION',
    `the volume group '${name}' has extents of ${extentBytes / MIB} MiB, and a disk is made of whole ones`,
    { hint: `give ${next} MiB instead of ${Math.ceil(sizeBytes / MIB)}` },
  );
}

function noRoom(neededBytes: number, { name, freeBytes }: VolumeGroup): AppError {
  const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.floor(bytes / MIB));
  return new AppError(
    'DISK_SPACE',
    `its disks take ${needed} MiB of the volume group '${name}', and ${free} MiB are free`,
    {
      details: { group: name, neededBytes, freeBytes },
      hint: `volumes are not sparse: remove instances that are not needed, or vgextend ${name} DEVICE`,
    },
  );
}
