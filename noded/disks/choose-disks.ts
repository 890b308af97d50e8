import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { InstallDisks } from './install-disks.ts';
import type { InstanceDisks, RoomBeside } from './instance-disks.ts';
import type { JobReporter } from '../jobs/job-handler.ts';

/**
 * What becomes of what is on an instance's disks when it is installed: they are of no use any more,
 * or stay until the installation has succeeded (always, or where there is room), or are
 * overwritten.
 */
export type FormerDisks = 'worthless' | 'keep' | 'keep-if-room' | 'overwrite';

type Disks = Pick<InstanceDisks, 'roomBeside' | 'openForInstall'>;

/**
 * Emptied disks give back the blocks that they share with nobody: one that a snapshot has may give
 * back nothing, so that with snapshots overwriting takes as much room as new disks beside it.
 * @param imageBytes 0 when it is not known yet
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
    `there is no room for new disks beside the old ones: ${say(room)}`,
    {
      details: { neededBytes: room.neededBytes, freeBytes: room.freeBytes },
      hint:
        instance.snapshots.length === 0
          ? 'free space there, or let it overwrite the old disks: --no-keep-old'
          : `free space there: snapshots keep the blocks of disks that are overwritten, gnt-instance remove-snapshot ${instance.name} gives them back`,
    },
  );
}

/**
 * Where an installation writes, with the room for it. Touches nothing yet.
 * @throws AppError DISK_SPACE
 */
export async function chooseDisks(
  disks: Disks,
  instance: InstanceRecord,
  formerDisks: FormerDisks,
  imageBytes: number,
  report: Pick<JobReporter, 'log'>,
): Promise<InstallDisks & Disposable> {
  const overwritten = (): InstallDisks & Disposable =>
    disks.openForInstall(instance, { kind: 'in-place' });
  if (formerDisks === 'worthless' || instance.disks.length === 0) return overwritten();
  const hasSnapshots = instance.snapshots.length > 0;
  if (formerDisks === 'overwrite') {
    if (hasSnapshots) await requireRoomBeside(disks, instance, imageBytes);
    report.log('the old disks are overwritten: a failure from then on leaves nothing to start');
    return overwritten();
  }
  const room =
    formerDisks === 'keep' || hasSnapshots
      ? await requireRoomBeside(disks, instance, imageBytes)
      : await disks.roomBeside(instance, imageBytes);
  if (!room.isEnough) {
    report.log(`no room to keep the old disks, they are overwritten: ${say(room)}`, 'warn');
    return overwritten();
  }
  report.log('the old disks stay until the installation has succeeded');
  return disks.openForInstall(instance, { kind: 'beside', neededBytes: room.neededBytes });
}

function say({ neededBytes, freeBytes }: RoomBeside): string {
  const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.ceil(bytes / MIB));
  return `they may take ${needed} MiB, and ${free} MiB are free`;
}
