import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { RoomBeside } from './disk-driver.ts';
import type { InstallDisks } from './install-disks.ts';
import type { InstanceDisks } from './instance-disks.ts';

/**
 * How an installation treats the present disks: as worthless, kept until it succeeds (always, or if
 * there is room), or overwritten.
 */
export type FormerDisks = 'worthless' | 'keep' | 'keep-if-room' | 'overwrite';

type Disks = Pick<InstanceDisks, 'roomBeside' | 'openForInstall'>;

/**
 * Requires room for new disks beside the old ones. Emptied disks free only blocks that no snapshot
 * shares. With snapshots, overwriting may therefore need as much room as new disks.
 * @param imageBytes 0 if unknown
 * @throws AppError DISK_SPACE
 */
export async function requireRoomBeside(
  disks: Pick<InstanceDisks, 'roomBeside'>,
  instance: InstanceRecord,
  imageBytes: number,
): Promise<RoomBeside> {
  const room = await disks.roomBeside(instance, imageBytes);
  if (room.isEnough) return room;
  throw new AppError(
    'DISK_SPACE',
    `not enough room for new disks beside the old ones: ${say(room)}`,
    {
      details: { neededBytes: room.neededBytes, freeBytes: room.freeBytes },
      hint:
        instance.snapshots.length === 0
          ? 'Free space there, or overwrite the old disks with --no-keep-old.'
          : `Free space there. Snapshots keep overwritten blocks; remove one: gnt-instance remove-snapshot ${instance.name} SNAPSHOT`,
    },
  );
}

/**
 * Returns the disks that an installation writes to, with their room reserved. Changes no disk yet.
 * @throws AppError DISK_SPACE
 */
export async function chooseDisks(
  disks: Disks,
  instance: InstanceRecord,
  formerDisks: FormerDisks,
  imageBytes: number,
  report: { log(message: string, level?: 'info' | 'warn'): void },
): Promise<InstallDisks & Disposable> {
  const overwritten = (): InstallDisks & Disposable =>
    disks.openForInstall(instance, { kind: 'in-place' });
  if (formerDisks === 'worthless' || instance.disks.length === 0) return overwritten();
  const hasSnapshots = instance.snapshots.length > 0;
  if (formerDisks === 'overwrite') {
    if (hasSnapshots) await requireRoomBeside(disks, instance, imageBytes);
    report.log('overwriting the old disks: a failure from here on leaves nothing to start');
    return overwritten();
  }
  const room =
    formerDisks === 'keep' || hasSnapshots
      ? await requireRoomBeside(disks, instance, imageBytes)
      : await disks.roomBeside(instance, imageBytes);
  if (!room.isEnough) {
    report.log(`no room to keep the old disks, overwriting them: ${say(room)}`, 'warn');
    return overwritten();
  }
  report.log('keeping the old disks until the installation succeeds');
  return disks.openForInstall(instance, { kind: 'beside', neededBytes: room.neededBytes });
}

function say({ neededBytes, freeBytes }: RoomBeside): string {
  const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.ceil(bytes / MIB));
  return `up to ${needed} MiB needed, ${free} MiB free`;
}
