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

/** Time until a store that was away is asked again. */
const AGAIN_MS = 10_000;
/** Time between two writes of one guest, whatever it says in between. */
const WRITE_PAUSE_MS = 1_000;
/**
 * Time until the first write: a guest says that it is up, and its verdict right after; who waits
 * for that must not wait for the disk.
 */
const WRITE_DELAY_MS = 100;
const RESULT_GRACE_MS = 5_000;

export interface GuestReportsDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly keeper: Pick<MachineKeeper, 'get' | 'whenGone'>;
  readonly guestEvents: Pick<GuestEvents, 'subscribe' | 'listenEarly'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Time for the status file to come after cloud-init's last event; 5 s by default. */
  readonly resultGraceMs?: number;
  /** Time until a store that was away is asked again; 10 s by default. */
  readonly againMs?: number;
  /** Time until what was said after a silence is written; 100 ms by default. */
  readonly writeDelayMs?: number;
}

/**
 * What guests say of themselves in normal runs. It is known at once, and kept in the record: at
 * most one write a second, however often a guest changes its mind.
 */
export interface GuestReports {
  /** Listens to the guest of a machine that this daemon started, until that is gone. */
  follow(kept: KeptMachine): void;
  /**
   * The same for a machine that an earlier daemon started: metad tells all its events again, and
   * only the record knows which of them are of its present boot. None counts before it was read.
   */
  followAdopted(kept: KeptMachine): void;
  /**
   * What the guest said until `reset` is of the boot before, also what is still on its way then.
   * @param reset begins the new boot; gives the number of metad's last event before it
   */
  forget(uuid: string, reset: () => Promise<number>): Promise<void>;
  /** What the guest of the present run said; null when nothing runs, or nothing was said. */
  report(instance: InstanceRecord): GuestReport | null;
  /** Resolves with the next thing that the guest says, and when its machine is gone. */
  nextChange(uuid: string, signal: AbortSignal): Promise<void>;
}

export function createGuestReports(dependencies: GuestReportsDependencies): GuestReports {
  const { instances, keeper, guestEvents, logger, clock } = dependencies;
  const { resultGraceMs = RESULT_GRACE_MS, againMs = AGAIN_MS } = dependencies;
  const { writeDelayMs = WRITE_DELAY_MS } = dependencies;
  /** What guests of machines that run have said, from that moment on. */
  const heard = new Map<string, GuestReport>();
  const writing = new Set<string>();
  /** Numbers by guests that were reset: events up to this one are of the boot before. */
  const endOfFormerBoot = new Map<string, number>();
  /** The number of the last event of each guest, for when metad cannot be asked for it. */
  const lastSequence = new Map<string, number>();
  const calls = new WakeCalls();

  const write = async (uuid: string, report: GuestReport): Promise<void> => {
    const record = await instances.findByUuid(uuid);
    // An orphan may have its record again, and then it is heard again.
    if (record === undefined || isSaid(record.guestReport, report)) return;
    await instances.update(uuid, (current) => {
      // Meanwhile it may have been forgotten, or more have been said.
      const latest = heard.get(uuid);
      if (latest === undefined) return current;
      const guestReport = merge(current.guestReport, latest);
      return { ...current, guestReport, ...keepHostKeys(current, guestReport.firstHostKeys) };
    });
  };

  /** Writes what was heard last until the record has it. */
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
        // Neither the status file nor another boot came meanwhile.
        if (heard.get(uuid)?.boot === latest)
          take(uuid, startedAtMs, { boot: judgeEvents(latest) });
      });
    } else if (event.type === 'boot-result') {
      take(uuid, startedAtMs, { boot: hearBootResult(event.result) });
    } else if (event.type === 'host-keys') {
      const { hostKeys, firstHostKeys, loginUser } = heard.get(uuid) ?? NOTHING;
      // Whoever posts a part of it takes nothing back of the rest.
      take(uuid, startedAtMs, {
        hostKeys: event.keys.length > 0 ? event.keys : hostKeys,
        firstHostKeys: firstHostKeys.length > 0 ? firstHostKeys : event.keys,
        loginUser: event.user ?? loginUser,
      });
    }
  };

  /** What was said in the present run: what is in memory, and what an earlier daemon wrote down. */
  const reportOf = ({ uuid, guestReport }: InstanceRecord): GuestReport | null => {
    const runStartedAtMs = keeper.get(uuid)?.machine.startedAtMs;
    if (runStartedAtMs === undefined) return null;
    const own = heard.get(uuid);
    const stored = isOfRun(guestReport, runStartedAtMs) ? guestReport : null;
    return own === undefined ? stored : merge(stored, own);
  };

  /**
   * The number of the last event before the present boot of a machine, which an earlier daemon may
   * have reset. A store that is away, or lost the record, is asked again.
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

  /** Listens until the machine is gone. @param begin gives what ends the listening */
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
          // Meanwhile this daemon may have reset it, too.
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
      // Nothing that comes while it is being reset is of the boot that begins.
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
      // This is for the next daemon, which metad tells its events anew.
      const guestReport =
        lastOfFormer === 0 || runStartedAtMs === undefined
          ? null
          : { ...NOTHING, runStartedAtMs, afterSequence: lastOfFormer };
      // The reset ends a boot and no installation: keys that were not written yet stay the first.
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

/** What was said first, of being up and of the keys, stays; of the boot the latest counts. */
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
