import {
  NO_PROGRESS,
  POWER_CUT_GRACE_S,
  type LifecycleAdvance,
  type LifecycleCommand,
  type LifecycleEvent,
  type LifecycleProgress,
  type LifecycleRecord,
} from '#shared/contract/lifecycle.ts';
import { assertNever } from '#shared/errors/app-error.ts';

/** Event in the life of an instance with run lists. */
export type LifecycleHappening =
  | ({ readonly sequence: number } & Pick<LifecycleAdvance, 'event' | 'progress'>)
  | { readonly type: 'announced'; readonly command: LifecycleCommand }
  | { readonly type: 'withdrawn' }
  | { readonly type: 'reset' }
  | { readonly type: 'deadline' }
  | { readonly type: 'gone' };

/** Effect of an event beside the new record. */
export type LifecycleAction =
  /** Publishes another status. */
  | { readonly do: 'publish' }
  | { readonly do: 'audit'; readonly line: string }
  | { readonly do: 'cut-power' }
  /** Cuts the power and configures the instance down. */
  | { readonly do: 'stop' };

export interface LifecycleTerms {
  readonly nowMs: number;
  readonly decommissionTimeoutS: number;
  /** Seconds until it must be operational; null without a limit. */
  readonly bootTimeoutS: number | null;
  readonly hasDecommissionList: boolean;
}

export interface LifecycleStep {
  readonly record: LifecycleRecord;
  readonly actions: readonly LifecycleAction[];
}

/** Starts a run without guest events. */
export function beginRun(
  run: string,
  runStartedAtMs: number,
  terms: Pick<LifecycleTerms, 'nowMs' | 'bootTimeoutS'>,
): LifecycleRecord {
  return {
    run,
    runStartedAtMs,
    state: 'booting',
    kind: null,
    script: null,
    exitStatus: null,
    reason: null,
    announced: null,
    progress: NO_PROGRESS,
    sequence: 0,
    deadlineMs: bootDeadline(terms),
  };
}

/** Applies an event to a lifecycle. Only this function decides its state. */
export function planLifecycle(
  record: LifecycleRecord,
  happening: LifecycleHappening,
  terms: LifecycleTerms,
): LifecycleStep {
  if ('event' in happening) return hear(record, happening, terms);
  switch (happening.type) {
    case 'announced':
      return shown(record, { ...record, announced: happening.command });
    case 'withdrawn':
      return shown(record, { ...record, announced: null });
    case 'reset':
      return shown(record, { ...record, ...freshBoot(terms) }, '*RS> Reset');
    case 'deadline':
      return passDeadline(record, terms);
    case 'gone':
      return end(record, terms);
    default:
      return assertNever(happening);
  }
}

function hear(
  record: LifecycleRecord,
  { event, progress, sequence }: Extract<LifecycleHappening, { event: LifecycleEvent }>,
  terms: LifecycleTerms,
): LifecycleStep {
  // metad replays all events to each new daemon. Those of other runs do not count.
  if (sequence <= record.sequence || event.run !== record.run) return { record, actions: [] };
  const heard = { ...record, progress, sequence };
  switch (event.type) {
    case 'booting':
      return shown(record, { ...heard, ...freshBoot(terms), progress }, '*RS> Booting');
    case 'started':
      return said({ ...heard, script: event.entry, exitStatus: null }, [
        `*RS> RightScript: ${event.entry}`,
      ]);
    case 'finished':
      return said({ ...heard, script: event.entry, exitStatus: event.status }, [
        event.status === 0
          ? `*RS> Completed: ${event.entry}`
          : `*RS> Aborted: ${event.entry}, exit status ${event.status}`,
      ]);
    case 'operational':
    case 'stranded':
      return comeUp(record, heard, event.type);
    case 'decommissioning':
      return decommission(record, heard, progress, terms);
    case 'decommissioned':
      return endDecommission(record, heard, event.timedOut === true, terms);
    default:
      return assertNever(event);
  }
}

function comeUp(
  record: LifecycleRecord,
  heard: LifecycleRecord,
  state: 'operational' | 'stranded',
): LifecycleStep {
  if (record.state === state) return said(heard, []);
  const up = { ...heard, state, kind: null };
  if (state === 'operational')
    return shown(record, { ...up, reason: null, deadlineMs: null }, '*RS> Operational');
  const { script, exitStatus } = heard;
  const hasFailed = script?.startsWith('boot/') === true && (exitStatus ?? 0) !== 0;
  const reason = hasFailed
    ? `${script} ended with exit status ${exitStatus}`
    : 'the guest could not run its boot list';
  // The deadline of a decommissioning does not apply to a boot.
  const deadlineMs = record.state === 'decommissioning' ? null : record.deadlineMs;
  return shown(record, { ...up, reason, deadlineMs }, `*RS> Stranded: ${reason}`);
}

function decommission(
  record: LifecycleRecord,
  heard: LifecycleRecord,
  progress: LifecycleProgress,
  { nowMs, decommissionTimeoutS }: LifecycleTerms,
): LifecycleStep {
  const kind = progress.kind === 'stop' ? kindOfStop(record.announced) : progress.kind;
  const next = { ...heard, state: 'decommissioning' as const, kind, script: null };
  // A repeated report does not extend the deadline.
  const isBegun = record.state === 'decommissioning';
  const deadlineMs = isBegun
    ? record.deadlineMs
    : nowMs + (decommissionTimeoutS + POWER_CUT_GRACE_S) * 1000;
  if (isBegun && record.kind === kind) return said({ ...heard, deadlineMs }, []);
  return shown(
    record,
    { ...next, exitStatus: null, reason: null, deadlineMs },
    `*RS> Decommissioning: ${kind ?? 'stop'}`,
  );
}

/** The begin may have been lost in a crash of both daemons. The end counts anyway. */
function endDecommission(
  record: LifecycleRecord,
  heard: LifecycleRecord,
  isTimedOut: boolean,
  terms: LifecycleTerms,
): LifecycleStep {
  if (record.state === 'decommissioned' || record.state === 'failed') return said(heard, []);
  const kind = record.kind ?? heard.progress.kind ?? kindOfStop(record.announced);
  if (isTimedOut) return fail(record, { ...heard, kind }, tookTooLong(terms));
  return shown(
    record,
    { ...heard, state: 'decommissioned', kind, deadlineMs: null },
    `*RS> Decommissioned: ${kind}`,
  );
}

/** The guest only knows that it goes down; the host knows why. */
function kindOfStop(announced: LifecycleCommand | null): 'reboot' | 'stop' | 'terminate' {
  if (announced?.do !== 'stop' && announced?.do !== 'terminate') return 'stop';
  return announced.kind ?? announced.do;
}

function passDeadline(record: LifecycleRecord, terms: LifecycleTerms): LifecycleStep {
  const { deadlineMs, state } = record;
  if (deadlineMs === null || deadlineMs > terms.nowMs) return { record, actions: [] };
  if (state !== 'decommissioning' && state !== 'booting' && state !== 'stranded')
    return { record, actions: [] };
  const reason =
    state === 'decommissioning'
      ? tookTooLong(terms)
      : `it was not operational within ${terms.bootTimeoutS ?? 0} s`;
  const failed = fail(record, record, reason);
  const end =
    state === 'decommissioning' ? ({ do: 'cut-power' } as const) : ({ do: 'stop' } as const);
  return { ...failed, actions: [...failed.actions, end] };
}

function fail(record: LifecycleRecord, heard: LifecycleRecord, reason: string): LifecycleStep {
  return shown(
    record,
    { ...heard, state: 'failed', reason, deadlineMs: null },
    `*RS> Failed: ${reason}`,
  );
}

function tookTooLong({ decommissionTimeoutS }: LifecycleTerms): string {
  return `its decommission list did not end within ${decommissionTimeoutS} s`;
}

/** Handles the end of the QEMU process. */
function end(record: LifecycleRecord, terms: LifecycleTerms): LifecycleStep {
  const ended = { ...record, announced: null, deadlineMs: null };
  const { state } = record;
  if (state === 'failed' || state === 'decommissioned') return said(ended, []);
  if (state !== 'decommissioning' && !terms.hasDecommissionList)
    return said({ ...ended, state: 'decommissioned' }, ['*RS> Ended']);
  const limitMs = (record.deadlineMs ?? Infinity) - POWER_CUT_GRACE_S * 1000;
  const reason =
    state !== 'decommissioning'
      ? 'its QEMU process ended without decommissioning'
      : terms.nowMs >= limitMs
        ? tookTooLong(terms)
        : 'its QEMU process ended before its decommission list did';
  return said({ ...ended, state: 'failed', reason }, [`*RS> Failed: ${reason}`]);
}

function freshBoot(
  terms: LifecycleTerms,
): Pick<
  LifecycleRecord,
  'state' | 'kind' | 'script' | 'exitStatus' | 'reason' | 'announced' | 'deadlineMs'
> {
  return {
    state: 'booting',
    kind: null,
    script: null,
    exitStatus: null,
    reason: null,
    announced: null,
    deadlineMs: bootDeadline(terms),
  };
}

function bootDeadline({
  nowMs,
  bootTimeoutS,
}: Pick<LifecycleTerms, 'nowMs' | 'bootTimeoutS'>): number | null {
  return bootTimeoutS === null ? null : nowMs + bootTimeoutS * 1000;
}

function said(record: LifecycleRecord, lines: readonly string[]): LifecycleStep {
  return { record, actions: lines.map((line) => ({ do: 'audit', line })) };
}

/** Adds a publication if the guest's status changed. */
function shown(before: LifecycleRecord, record: LifecycleRecord, line?: string): LifecycleStep {
  const { actions } = said(record, line === undefined ? [] : [line]);
  const isOther =
    before.state !== record.state ||
    before.kind !== record.kind ||
    before.deadlineMs !== record.deadlineMs ||
    before.announced?.entry !== record.announced?.entry;
  return { record, actions: isOther ? [...actions, { do: 'publish' }] : actions };
}
