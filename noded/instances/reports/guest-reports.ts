import { setTimeout as sleep } from 'node:timers/promises';
import { WakeCalls } from '#shared/abort/wake-calls.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { GuestReport, InstanceRecord } from '#shared/contract/instance.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { keepHostKeys } from './host-keys.ts';
import { hearBootEvent, hearBootResult, isLastEvent, judgeEvents } from './boot-verdict.ts';
import type { GuestEvents } from './guest-events.ts';
import type { KeptMachine, MachineKeeper } from '../machines/machine-keeper.ts';

/** Time until an unreachable store is tried again. */
const AGAIN_MS = 10_000;
/** Time between two writes for one guest, however often it reports. */
const WRITE_PAUSE_MS = 1_000;
/**
 * Time until the first write. A guest reports its verdict right after its readiness, and clients
 * that wait for the verdict must not wait for a disk write.
 */
const WRITE_DELAY_MS = 100;
const RESULT_GRACE_MS = 5_000;

export interface GuestReportsDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly keeper: Pick<MachineKeeper, 'get' | 'whenGone'>;
  readonly guestEvents: Pick<GuestEvents, 'subscribe' | 'listenEarly'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Time to wait for the status file after cloud-init's last event; 5 s by default. */
  readonly resultGraceMs?: number;
  /** Time until an unreachable store is tried again; 10 s by default. */
  readonly againMs?: number;
  /** Time until the first write after a silence; 100 ms by default. */
  readonly writeDelayMs?: number;
}

/**
 * Holds guests' reports in normal runs. A report is visible at once and is written to the record at
 * most once a second.
 */
export interface GuestReports {
  /** Listens to the guest of a machine that this daemon started, until the machine ends. */
  follow(kept: KeptMachine): void;
  /**
   * Listens to the guest of a machine that an earlier daemon started. metad replays all its events,
   * and only the record tells which belong to the present boot. None counts before the record is
   * read.
   */
  followAdopted(kept: KeptMachine): void;
  /**
   * Assigns all events until the end of `reset` to the former boot, late ones included.
   * @param reset begins the new boot and returns the number of metad's last event before it
   */
  forget(uuid: string, reset: () => Promise<number>): Promise<void>;
  /** Returns the guest's report of the present run; null if it does not run or has not reported. */
  report(instance: InstanceRecord): GuestReport | null;
  /** Resolves at the guest's next report, or when its machine ends. */
  nextChange(uuid: string, signal: AbortSignal): Promise<void>;
}

export function createGuestReports(dependencies: GuestReportsDependencies): GuestReports {
  const { instances, keeper, guestEvents, logger, clock } = dependencies;
  const { resultGraceMs = RESULT_GRACE_MS, againMs = AGAIN_MS } = dependencies;
  const { writeDelayMs = WRITE_DELAY_MS } = dependencies;
  /** Reports of running guests, heard by this daemon. */
  const heard = new Map<string, GuestReport>();
  const writing = new Set<string>();
  /** Last event number of the former boot, by guests that were reset. */
  const endOfFormerBoot = new Map<string, number>();
  /** Last event number by guest, for times when metad does not respond. */
  const lastSequence = new Map<string, number>();
  const calls = new WakeCalls();

  const write = async (uuid: string, report: GuestReport): Promise<void> => {
    const record = await instances.findByUuid(uuid);
    // An orphan has no record. When it gets one again, its events are heard again.
    if (record === undefined || isSaid(record.guestReport, report)) return;
    await instances.update(uuid, (current) => {
      // Meanwhile the report may have been dropped or extended.
      const latest = heard.get(uuid);
      if (latest === undefined) return current;
      const guestReport = merge(current.guestReport, latest);
      return { ...current, guestReport, ...keepHostKeys(current, guestReport.firstHostKeys) };
    });
  };

  /** Retries until the record has the latest report. */
  const writeSometime = async (uuid: string): Promise<void> => {
    if (writing.has(uuid)) return;
    writing.add(uuid);
    try {
      await sleep(writeDelayMs, undefined, { ref: false });
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
        await sleep(isWritten ? WRITE_PAUSE_MS : againMs, undefined, { ref: false });
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
    calls.wake(uuid);
    void writeSometime(uuid);
  };

  const hear = (kept: KeptMachine, event: MetadEvent['event'], sequence: number): void => {
    const { uuid, startedAtMs } = kept.machine;
    if (sequence <= (endOfFormerBoot.get(uuid) ?? 0)) return;
    const { readyAtMs = null, boot = null } = heard.get(uuid) ?? NOTHING;
    if (event.type === 'ready' && readyAtMs === null) {
      take(uuid, startedAtMs, { readyAtMs: clock.now(), readySource: event.source });
    } else if (event.type === 'boot') {
      take(uuid, startedAtMs, { boot: hearBootEvent(boot, event.event) });
      const latest = heard.get(uuid)?.boot;
      if (!isLastEvent(event.event) || latest?.status !== 'running') return;
      void sleep(resultGraceMs, undefined, { ref: false }).then(() => {
        // Neither the status file nor another boot arrived meanwhile.
        if (heard.get(uuid)?.boot === latest)
          take(uuid, startedAtMs, { boot: judgeEvents(latest) });
      });
    } else if (event.type === 'boot-result') {
      take(uuid, startedAtMs, { boot: hearBootResult(event.result) });
    } else if (event.type === 'host-keys') {
      const { hostKeys, firstHostKeys, loginUser } = heard.get(uuid) ?? NOTHING;
      // A partial report does not remove the other parts.
      take(uuid, startedAtMs, {
        hostKeys: event.keys.length > 0 ? event.keys : hostKeys,
        firstHostKeys: firstHostKeys.length > 0 ? firstHostKeys : event.keys,
        loginUser: event.user ?? loginUser,
      });
    }
  };

  /**
   * Returns the report of the present run: events in memory and the stored report of an earlier
   * daemon.
   */
  const reportOf = ({ uuid, guestReport }: InstanceRecord): GuestReport | null => {
    const runStartedAtMs = keeper.get(uuid)?.machine.startedAtMs;
    if (runStartedAtMs === undefined) return null;
    const own = heard.get(uuid);
    const stored = isOfRun(guestReport, runStartedAtMs) ? guestReport : null;
    return own === undefined ? stored : merge(stored, own);
  };

  /**
   * Returns the last event number before the present boot, which an earlier daemon may have begun.
   * Retries while the store is unreachable or lacks the record.
   */
  const readEndOfFormerBoot = async (
    { uuid, startedAtMs }: KeptMachine['machine'],
    signal: AbortSignal,
  ): Promise<number> => {
    for (let isTold = false; ;) {
      try {
        const record = await instances.findByUuid(uuid);
        const report = record?.guestReport ?? null;
        if (record !== undefined) return isOfRun(report, startedAtMs) ? report.afterSequence : 0;
      } catch (error) {
        if (!isTold) logger.warn('guest-report.not-read', { uuid, err: error });
        isTold = true;
      }
      await sleep(againMs, undefined, { ref: false, signal });
    }
  };

  /**
   * Listens until the machine ends.
   * @param begin starts and returns a function that stops
   */
  const follow = ({ machine: { uuid } }: KeptMachine, begin: () => () => void): void => {
    const forgetAll = (): void => {
      heard.delete(uuid);
      endOfFormerBoot.delete(uuid);
      lastSequence.delete(uuid);
    };
    forgetAll();
    const stopCounting = guestEvents.subscribe(uuid, (_event, sequence) => {
      lastSequence.set(uuid, Math.max(sequence, lastSequence.get(uuid) ?? 0));
    });
    const stop = begin();
    void keeper.whenGone(uuid).then(() => {
      stopCounting();
      stop();
      forgetAll();
      calls.wake(uuid);
    });
  };

  return {
    follow: (kept) => {
      follow(kept, () =>
        guestEvents.subscribe(kept.machine.uuid, (...said) => hear(kept, ...said)),
      );
    },
    followAdopted: (kept) => {
      const { uuid } = kept.machine;
      follow(kept, () => {
        const early = guestEvents.listenEarly(uuid);
        let { stop } = early;
        const gone = new AbortController();
        const begin = async (): Promise<void> => {
          const end = await readEndOfFormerBoot(kept.machine, gone.signal);
          if (gone.signal.aborted) return;
          // Meanwhile this daemon may have reset it too.
          endOfFormerBoot.set(uuid, Math.max(end, endOfFormerBoot.get(uuid) ?? 0));
          stop = early.handOver((...said) => hear(kept, ...said));
        };
        void begin().catch((error: unknown) => {
          if (!gone.signal.aborted) logger.error('guest-report.deaf', { uuid, err: error });
        });
        return () => {
          gone.abort();
          stop();
        };
      });
    },
    forget: async (uuid, reset) => {
      // Events that arrive during the reset belong to the former boot.
      endOfFormerBoot.set(uuid, Number.MAX_SAFE_INTEGER);
      let lastOfFormer = 0;
      let firstHostKeys: readonly string[] = [];
      try {
        lastOfFormer = Math.max(await reset(), lastSequence.get(uuid) ?? 0);
        firstHostKeys = heard.get(uuid)?.firstHostKeys ?? [];
        heard.delete(uuid);
      } finally {
        endOfFormerBoot.set(uuid, lastOfFormer);
      }
      const runStartedAtMs = keeper.get(uuid)?.machine.startedAtMs;
      // The next daemon needs the number, since metad replays its events to it.
      const guestReport =
        lastOfFormer === 0 || runStartedAtMs === undefined
          ? null
          : { ...NOTHING, runStartedAtMs, afterSequence: lastOfFormer };
      // A reset ends a boot, not an installation: the first keys stay the first, written or not.
      await instances.update(uuid, (current) => ({
        ...current,
        guestReport,
        ...keepHostKeys(current, firstHostKeys),
      }));
      calls.wake(uuid);
    },
    report: reportOf,
    nextChange: (uuid, signal) => calls.next(uuid, signal),
  };
}

const NOTHING: GuestReport = {
  ...{ runStartedAtMs: 0, readyAtMs: null, readySource: null, boot: null },
  ...{ hostKeys: [], firstHostKeys: [], loginUser: null, afterSequence: 0 },
};

function isOfRun(report: GuestReport | null, runStartedAtMs: number): report is GuestReport {
  return report?.runStartedAtMs === runStartedAtMs;
}

/** Keeps the earliest readiness and first keys, and the latest boot. */
function merge(stored: GuestReport | null, report: GuestReport): GuestReport {
  if (stored === null || !isOfRun(stored, report.runStartedAtMs)) return report;
  const ready = stored.readyAtMs === null ? report : stored;
  return {
    runStartedAtMs: report.runStartedAtMs,
    readyAtMs: ready.readyAtMs,
    readySource: ready.readySource,
    boot: report.boot ?? stored.boot,
    hostKeys: report.hostKeys.length > 0 ? report.hostKeys : stored.hostKeys,
    firstHostKeys: stored.firstHostKeys.length > 0 ? stored.firstHostKeys : report.firstHostKeys,
    loginUser: report.loginUser ?? stored.loginUser,
    afterSequence: Math.max(report.afterSequence, stored.afterSequence),
  };
}

function isSaid(stored: GuestReport | null, report: GuestReport): boolean {
  return stored !== null && JSON.stringify(merge(stored, report)) === JSON.stringify(stored);
}
