import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { GuestReport, InstanceRecord } from '#shared/contract/instance.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { GuestEvents } from './guest-events.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

/** Until a report is written again that the store was not there for. */
const WRITE_AGAIN_MS = 10_000;

export interface GuestReportsDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly keeper: Pick<MachineKeeper, 'get' | 'whenGone'>;
  readonly guestEvents: Pick<GuestEvents, 'subscribe'>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/**
 * What guests say of themselves in normal runs. It is kept in the record, written once for each
 * change of each run, however often a guest repeats itself.
 */
export interface GuestReports {
  /** Listens to the guest of a machine until that is gone. Once for each machine. */
  follow(kept: KeptMachine): void;
  /** When the guest of the present run said that it is up. */
  readyAtMs(instance: InstanceRecord): number | null;
}

export function createGuestReports(dependencies: GuestReportsDependencies): GuestReports {
  const { instances, keeper, guestEvents, logger, clock } = dependencies;
  /** Of machines that run, from the moment on in which it was said. */
  const heard = new Map<string, GuestReport>();

  /** @returns whether the record has it */
  const write = async (uuid: string, report: GuestReport): Promise<boolean> => {
    const record = await instances.findByUuid(uuid);
    // An orphan may have its record again.
    if (record === undefined) return false;
    if (!isOfRun(record.guestReport, report))
      await instances.update(uuid, (current) => ({ ...current, guestReport: report }));
    return true;
  };

  const writeSometime = async (uuid: string, report: GuestReport): Promise<void> => {
    while (heard.get(uuid) === report) {
      try {
        if (await write(uuid, report)) return;
      } catch (error) {
        logger.warn('guest-report.not-written', { uuid, err: error });
      }
      await sleep(WRITE_AGAIN_MS, undefined, { ref: false });
    }
  };

  return {
    follow: (kept) => {
      const { uuid, startedAtMs } = kept.machine;
      heard.delete(uuid);
      const unsubscribe = guestEvents.subscribe(uuid, (event) => {
        if (event.type !== 'ready' || heard.has(uuid)) return;
        const report = {
          runStartedAtMs: startedAtMs,
          readyAtMs: clock.now(),
          readySource: event.source,
        };
        heard.set(uuid, report);
        void writeSometime(uuid, report);
      });
      void keeper.whenGone(uuid).then(() => {
        unsubscribe();
        heard.delete(uuid);
      });
    },
    readyAtMs: ({ uuid, guestReport }) => {
      const runStartedAtMs = keeper.get(uuid)?.machine.startedAtMs;
      if (runStartedAtMs === undefined) return null;
      const report = isOfRun(guestReport, { runStartedAtMs }) ? guestReport : heard.get(uuid);
      return report?.readyAtMs ?? null;
    },
  };
}

function isOfRun(
  report: GuestReport | null,
  { runStartedAtMs }: Pick<GuestReport, 'runStartedAtMs'>,
): report is GuestReport {
  return report?.runStartedAtMs === runStartedAtMs;
}
