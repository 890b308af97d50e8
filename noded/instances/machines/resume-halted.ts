import { every } from '#shared/clock/every.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import type { MachineKeeper } from './machine-keeper.ts';

/** Free space at which guests continue, so that they are not paused again at once. */
const ROOM = { share: 0.05, minBytes: MIB, maxBytes: 256 * MIB };
const LOOK_INTERVAL_MS = 5_000;

export interface ResumeDependencies {
  readonly keeper: Pick<MachineKeeper, 'list'>;
  readonly disks: Pick<InstanceDisks, 'freeBytes' | 'totalBytes' | 'isPoolFull'>;
  readonly logger: Logger;
}

/** Returns the free space that guests need, by the size of the file system. */
export function roomToResume(totalBytes: number): number {
  return Math.max(ROOM.minBytes, Math.min(ROOM.maxBytes, totalBytes * ROOM.share));
}

/**
 * Continues guests that were paused because the file system or thin pool of their disks was full,
 * when it has space again.
 */
export async function resumeHalted({ keeper, disks, logger }: ResumeDependencies): Promise<void> {
  const halted = keeper.list().filter(({ machine }) => machine.halt?.reason === 'disk-full');
  if (halted.length === 0) return;
  const [free, total] = await Promise.all([disks.freeBytes(), disks.totalBytes()]);
  const hasRoom = free >= roomToResume(total);
  for (const { machine, instanceName } of halted) {
    try {
      const isPoolFull = await disks.isPoolFull(machine);
      if (isPoolFull ?? !hasRoom) continue;
      await machine.resume();
      logger.info('machine.resumed', { instance: instanceName, freeBytes: free });
    } catch (error) {
      logger.warn('machine.not-resumed', { instance: instanceName, message: messageOf(error) });
    }
  }
}

/** Repeats this every few seconds until disposed. */
export function followHalted(dependencies: ResumeDependencies): Disposable {
  return every(LOOK_INTERVAL_MS, () =>
    resumeHalted(dependencies).catch((error: unknown) =>
      dependencies.logger.error('machine.not-resumed', { err: error }),
    ),
  );
}
