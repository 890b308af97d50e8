import { setTimeout as sleep } from 'node:timers/promises';
import type { BootReport } from '#shared/contract/boot-report.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { GuestReport, InstanceRecord } from '#shared/contract/instance.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import { hearBootEvent, hearBootResult, isLastEvent, judgeEvents } from './boot-verdict.ts';
import type { GuestEvents } from './guest-events.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

/** Until a report is written again that the store was not there for. */
const WRITE_AGAIN_MS = 10_000;
/** Between two writes of one guest, whatever it says in between. */
const WRITE_PAUSE_MS = 1_000;
const RESULT_GRACE_MS = 5_000;

export interface GuestReportsDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly keeper: Pick<MachineKeeper, 'get' | 'whenGone'>;
  readonly guestEvents: Pick<GuestEvents, 'subscribe'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** For the status file to come after cloud-init's last event; 5 s without. */
  readonly resultGraceMs?: number;
}

/**
 * What guests say of themselves in normal runs. It is known at once, and kept in the record: at
 * most one write a second, however often a guest changes its mind.
 */
export interface GuestReports {
  /** Listens to the guest of a machine until that is gone. Once for each machine. */
  follow(kept: KeptMachine): void;
  /** The machine was reset: what its guest said is of the boot before. */
  forget(uuid: string): Promise<void>;
  /** When the guest of the present run said that it is up. */
  readyAtMs(instance: InstanceRecord): number | null;
  /** How far the cloud-init of the present run got. */
  boot(instance: InstanceRecord): BootReport | null;
}

export function createGuestReports(dependencies: GuestReportsDependencies): GuestReports {
  const { instances, keeper, guestEvents, logger, clock } = dependencies;
  const { resultGraceMs = RESULT_GRACE_MS } = dependencies;
  /** Of machines that run, from the moment on in which it was said. */
  const heard = new Map<string, GuestReport>();
  const writing = new Set<string>();

  const write = async (uuid: string, report: GuestReport): Promise<void> => {
    const record = await instances.findByUuid(uuid);
    // An orphan may have its record again, and then it is heard again.
    if (record === undefined || isSaid(record.guestReport, report)) return;
    await instances.update(uuid, (current) => ({
      ...current,
      guestReport: merge(current.guestReport, report),
    }));
  };

  /** Writes what was heard last until the record has it. */
  const writeSometime = async (uuid: string): Promise<void> => {
    if (writing.has(uuid)) return;
    writing.add(uuid);
    try {
      for (;;) {
        const report = heard.get(uuid);
        if (report === undefined) return;
        const isWritten = await write(uuid, report).then(
          () => true,
          (error: unknown) => {
            logger.warn('guest-report.not-written', { uuid, err: error });
            return false;
          },
        );
        await sleep(isWritten ? WRITE_PAUSE_MS : WRITE_AGAIN_MS, undefined, { ref: false });
        if (isWritten && heard.get(uuid) === report) return;
      }
    } finally {
      writing.delete(uuid);
    }
  };

  const take = (uuid: string, runStartedAtMs: number, changes: Partial<GuestReport>): void => {
    const before = heard.get(uuid) ?? NOTHING;
    const after = { ...before, ...changes, runStartedAtMs };
    if (heard.has(uuid) && isSaid(before, after)) return;
    heard.set(uuid, after);
    void writeSometime(uuid);
  };

  const hear = (kept: KeptMachine, event: MetadEvent['event']): void => {
    const { uuid, startedAtMs } = kept.machine;
    const { readyAtMs = null, boot = null } = heard.get(uuid) ?? NOTHING;
    if (event.type === 'ready' && readyAtMs === null) {
      take(uuid, startedAtMs, { readyAtMs: clock.now(), readySource: event.source });
    } else if (event.type === 'boot') {
      take(uuid, startedAtMs, { boot: hearBootEvent(boot, event.event) });
      const latest = heard.get(uuid)?.boot;
      if (!isLastEvent(event.event) || latest?.status !== 'running') return;
      void sleep(resultGraceMs, undefined, { ref: false }).then(() => {
        // Neither the status file nor another boot came meanwhile.
        if (heard.get(uuid)?.boot === latest)
          take(uuid, startedAtMs, { boot: judgeEvents(latest) });
      });
    } else if (event.type === 'boot-result') {
      take(uuid, startedAtMs, { boot: hearBootResult(event.result) });
    }
  };

  /** Of the present run, from memory and from before this daemon's start. */
  const reportOf = ({ uuid, guestReport }: InstanceRecord): GuestReport | null => {
    const runStartedAtMs = keeper.get(uuid)?.machine.startedAtMs;
    if (runStartedAtMs === undefined) return null;
    const own = heard.get(uuid);
    const stored = isOfRun(guestReport, runStartedAtMs) ? guestReport : null;
    return own === undefined ? stored : merge(stored, own);
  };

  return {
    follow: (kept) => {
      const { uuid } = kept.machine;
      heard.delete(uuid);
      const unsubscribe = guestEvents.subscribe(uuid, (event) => hear(kept, event));
      void keeper.whenGone(uuid).then(() => {
        unsubscribe();
        heard.delete(uuid);
      });
    },
    forget: async (uuid) => {
      await instances.update(uuid, (current) => ({ ...current, guestReport: null }));
      heard.delete(uuid);
    },
    readyAtMs: (instance) => reportOf(instance)?.readyAtMs ?? null,
    boot: (instance) => reportOf(instance)?.boot ?? null,
  };
}

const NOTHING: GuestReport = { runStartedAtMs: 0, readyAtMs: null, readySource: null, boot: null };

function isOfRun(report: GuestReport | null, runStartedAtMs: number): boolean {
  return report?.runStartedAtMs === runStartedAtMs;
}

/** What was said first of being up stays; of the boot the latest counts. */
function merge(stored: GuestReport | null, report: GuestReport): GuestReport {
  if (stored === null || !isOfRun(stored, report.runStartedAtMs)) return report;
  const ready = stored.readyAtMs === null ? report : stored;
  return {
    runStartedAtMs: report.runStartedAtMs,
    readyAtMs: ready.readyAtMs,
    readySource: ready.readySource,
    boot: report.boot ?? stored.boot,
  };
}

function isSaid(stored: GuestReport | null, report: GuestReport): boolean {
  return stored !== null && JSON.stringify(merge(stored, report)) === JSON.stringify(stored);
}
