import { orAborted } from '#shared/abort/abortable.ts';
import { setAlarm } from '#shared/abort/alarm.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { InstallEvent, InstallReport } from '#shared/contract/install-event.ts';
import type { StageTiming } from '#shared/contract/instance.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { agentStages, type InstallStage } from '#shared/contract/primitives.ts';
import { AppError, type AppErrorOptions, isAppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { Machine, MachineExit } from '../../vmm/machine.ts';
import { agentCode } from './agent-code.ts';
import { AgentWord } from './agent-word.ts';
import { findMissingStage, listRequiredStages } from './required-stages.ts';
import type { InstallLog } from '../../host/install-log.ts';

/** Time from the result to power-off: the agent powers off at once. */
const SHUTDOWN_TIMEOUT_MS = 60_000;
/** A result may arrive after the end of the QEMU process. */
const LATE_RESULT_MS = 3_000;

export interface ApplianceRunInput {
  readonly plan: InstallPlan;
  readonly machine: Machine;
  readonly log: InstallLog;
  readonly context: JobContext;
  readonly clock: Clock;
  /** Time from power-on to the agent's first event. */
  readonly bootTimeoutMs: number;
  /** Subscribes to the events of this instance's guest. */
  readonly subscribe: (listener: (event: MetadEvent['event']) => void) => () => void;
  /** Receives the key that verifies the agent's signatures. */
  readonly onAgentKey?: (keyHex: string) => void;
  readonly onStage: (stage: InstallStage) => void;
  readonly onTiming: (timing: StageTiming) => void;
}

type Outcome = Extract<InstallEvent, { type: 'result' }>['outcome'];
type Success = Extract<Outcome, { status: 'success' }>;
type Failure = Extract<Outcome, { status: 'failure' }>;

/**
 * Follows a running appliance from power-on to power-off. Success requires the agent's signed
 * result after every stage of the plan, no later failure, and a clean exit. The QEMU process has
 * ended when this function returns or throws.
 * @returns the size of each dump in bytes, as the agent reports it
 * @throws AppError the agent's own, APPLIANCE_NO_RESULT, APPLIANCE_CRASHED, or the signal's reason
 */
export async function followAppliance(input: ApplianceRunInput): Promise<readonly number[]> {
  const follower = new Follower(input);
  const unsubscribe = input.subscribe((event) => follower.take(event));
  let isUnexplained = false;
  try {
    return await follower.follow();
  } catch (error) {
    isUnexplained =
      isAppError(error, 'APPLIANCE_NO_RESULT') || isAppError(error, 'APPLIANCE_CRASHED');
    throw error;
  } finally {
    unsubscribe();
    follower.tellOfForgeries();
    const { consoleTail } = await input.machine.kill();
    if (isUnexplained) input.log.keepConsole(consoleTail);
  }
}

/**
 * Tells whether the appliance hung or crashed before its agent ran. The instance's disks are
 * untouched then, and another boot may succeed.
 */
export function hasNeverComeUp(error: unknown): boolean {
  return error instanceof ApplianceFailure && error.neverCameUp;
}

/** A failed run of the appliance, with the stage of the failure. */
export class ApplianceFailure extends AppError {
  /** Stage that the agent reports. The agent unmounts and syncs before it reports. */
  readonly stage: InstallStage | null;
  readonly neverCameUp: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: AppErrorOptions & {
      readonly stage?: InstallStage;
      readonly neverCameUp?: boolean;
    },
  ) {
    super(code, message, options);
    this.stage = options.stage ?? null;
    this.neverCameUp = options.neverCameUp ?? false;
  }
}

/**
 * INVARIANTS: only signed events count; a failure belongs to `stage`; each stage starts and ends
 * once, even if the guest repeats events, so that a guest cannot fill the record or the stream;
 * every text of the guest is masked.
 */
class Follower {
  readonly #input: ApplianceRunInput;
  readonly #started = new Set<InstallStage>();
  readonly #finished = new Set<InstallStage>();
  readonly #startedAtMs: number;
  readonly #word = new AgentWord();
  readonly #result = Promise.withResolvers<Success>();
  /** Rejects on a failure at any time, even after a success. */
  readonly #failed = Promise.withResolvers<never>();
  readonly #agentStarted = Promise.withResolvers<void>();
  #stageStartedAtMs = 0;
  stage: InstallStage = 'boot-appliance';

  constructor(input: ApplianceRunInput) {
    this.#input = input;
    this.#startedAtMs = input.clock.monotonicMs();
  }

  take(event: MetadEvent['event']): void {
    if (event.type === 'gap') this.#takeGap(event.lost);
    // An earlier appliance of this instance may still send events.
    if (event.type !== 'install' || event.installId !== this.#input.plan.installId) return;
    this.#takeReport(event.event);
  }

  /** Reports forged and lost events, so that readers of the log see the attempt. */
  tellOfForgeries(): void {
    const { context, log } = this.#input;
    const { forged, lost } = this.#word;
    const told = [
      ...(forged > 0 ? [`ignored ${forged} events without a valid signature of the agent`] : []),
      ...(lost > 0 ? [`${lost} events of the agent were lost`] : []),
    ];
    for (const line of told) {
      log.append(`== ${line}`);
      context.report.log(line, 'warn');
    }
  }

  async follow(): Promise<readonly number[]> {
    this.#failed.promise.catch(() => undefined);
    const first = await this.#firstWord();
    const outcome = 'status' in first ? first : await this.#lateResult(first);
    this.#requireAllStages();
    this.#input.onStage('shutdown-appliance');
    this.#startStage('shutdown-appliance', this.#input.clock.monotonicMs());
    const exit = await this.#waitForEnd();
    if (exit.reason !== 'guest-shutdown') throw this.#crash(exit, 'after it reported success');
    this.#finishStage('shutdown-appliance', this.#input.clock.monotonicMs(), 'powered off');
    return outcome.dumpBytes ?? [];
  }

  /**
   * Returns the result, or the end of the QEMU process.
   * @throws AppError the agent's, APPLIANCE_NO_RESULT when the appliance does not come up, or the
   * signal's reason
   */
  async #firstWord(): Promise<Success | MachineExit> {
    const { context, machine, bootTimeoutMs } = this.#input;
    using booting = startDeadline(
      context.signal,
      bootTimeoutMs,
      () =>
        new ApplianceFailure(
          'APPLIANCE_NO_RESULT',
          `the appliance did not report within ${bootTimeoutMs / 1000} s`,
          {
            hint: 'Look at its console with gnt-instance log NAME. For a slow host, raise --appliance-boot-timeout of gnt-noded.',
            neverCameUp: true,
          },
        ),
    );
    void this.#agentStarted.promise.then(() => booting[Symbol.dispose]());
    const word = Promise.race([this.#failed.promise, this.#result.promise, machine.exited]);
    return await orAborted(word, booting.signal);
  }

  /**
   * Fails the run when metad dropped events before the agent's key arrived: the key was in the
   * first event.
   */
  #takeGap(lost: number): void {
    if (this.#word.keyHex !== null) return;
    this.#failed.reject(
      new AppError(
        'APPLIANCE_NO_RESULT',
        `the first ${lost} events of the appliance were lost, so its later events cannot be verified`,
        { hint: 'Try again: gnt-instance reinstall NAME' },
      ),
    );
  }

  #requireAllStages(): void {
    const finished = [...this.#finished];
    const missing =
      findMissingStage(listRequiredStages(this.#input.plan), finished) ??
      [...this.#started].find((stage) => !this.#finished.has(stage));
    if (missing === undefined) return;
    throw new AppError(
      'APPLIANCE_NO_RESULT',
      `the appliance reported success, but not the end of stage ${missing}`,
      { details: { stage: missing } },
    );
  }

  #takeIntroduction(report: Extract<InstallEvent, { type: 'agent-started' }>): void {
    const { clock, onAgentKey } = this.#input;
    if (this.#finished.has('boot-appliance')) return;
    if (report.key !== undefined) onAgentKey?.(report.key);
    this.#finishStage(
      'boot-appliance',
      clock.monotonicMs(),
      describeBoot(report),
      this.#startedAtMs,
    );
    this.#agentStarted.resolve();
  }

  #takeReport(posted: InstallReport): void {
    const { context, log } = this.#input;
    const report = this.#word.take(posted);
    if (report === null) return;
    switch (report.type) {
      case 'agent-started':
        return this.#takeIntroduction(report);
      case 'stage-started':
        if (!agentStages.has(report.stage) || this.#started.has(report.stage)) return;
        log.append(`== ${report.stage}`);
        this.#input.onStage(report.stage);
        this.#startStage(report.stage, report.atMs);
        return;
      case 'stage-finished':
        if (!agentStages.has(report.stage) || this.#finished.has(report.stage)) return;
        log.append(`== ${report.stage}: ${report.summary}`);
        this.#finishStage(report.stage, report.atMs, log.mask(report.summary));
        return;
      case 'progress':
        context.report.progress(report.stage, report.doneBytes, report.totalBytes);
        return;
      case 'log':
        log.appendOutput(report.line);
        context.report.output(report.stage, log.tail().at(-1) ?? '');
        return;
      case 'result':
        if (report.outcome.status === 'failure')
          this.#failed.reject(this.#agentFailure(report.outcome));
        else this.#result.resolve(report.outcome);
        return;
    }
  }

  #startStage(stage: InstallStage, atMs: number): void {
    this.stage = stage;
    this.#started.add(stage);
    this.#stageStartedAtMs = atMs;
    this.#input.context.report.stageStarted(stage);
  }

  #finishStage(
    stage: InstallStage,
    atMs: number,
    summary: string,
    startedAtMs = this.#stageStartedAtMs,
  ): void {
    this.#finished.add(stage);
    const durationMs = Math.max(0, Math.round(atMs - startedAtMs));
    this.#input.onTiming({ stage, durationMs, summary });
    this.#input.context.report.stageFinished(stage, durationMs, summary);
  }

  async #lateResult(exit: MachineExit): Promise<Success> {
    const none = Promise.withResolvers<undefined>();
    const alarm = setAlarm(LATE_RESULT_MS, () => none.resolve(undefined));
    const outcome = await Promise.race([this.#failed.promise, this.#result.promise, none.promise]);
    alarm[Symbol.dispose]();
    if (outcome !== undefined) return outcome;
    if (exit.reason === 'guest-shutdown') {
      throw new AppError(
        'APPLIANCE_NO_RESULT',
        'the appliance powered off without reporting a result',
        {
          hint: 'Look at the last lines of its console: gnt-instance log NAME',
        },
      );
    }
    throw this.#crash(exit, 'before it reported a result');
  }

  async #waitForEnd(): Promise<MachineExit> {
    using ending = startDeadline(
      this.#input.context.signal,
      SHUTDOWN_TIMEOUT_MS,
      () =>
        new AppError(
          'APPLIANCE_CRASHED',
          `the appliance did not power off within ${SHUTDOWN_TIMEOUT_MS / 1000} s`,
        ),
    );
    const end = Promise.race([this.#failed.promise, this.#input.machine.exited]);
    return await orAborted(end, ending.signal);
  }

  #crash(exit: MachineExit, when: string): AppError {
    const how =
      exit.signal ?? (exit.exitStatus === null ? exit.reason : `status ${exit.exitStatus}`);
    return new ApplianceFailure(
      'APPLIANCE_CRASHED',
      `the appliance ended ${when} (${exit.reason}, ${how})`,
      {
        hint: 'Look at the last lines of its console with gnt-instance log NAME, then try again: gnt-instance reinstall NAME',
        details: { stderr: exit.stderrTail },
        neverCameUp: !this.#finished.has('boot-appliance') && this.stage === 'boot-appliance',
      },
    );
  }

  #agentFailure(outcome: Failure): AppError {
    this.stage = outcome.stage;
    const { log } = this.#input;
    return new ApplianceFailure(agentCode(outcome.code), log.mask(outcome.message), {
      stage: outcome.stage,
      hint: outcome.hint === undefined ? undefined : log.mask(outcome.hint),
    });
  }
}

function describeBoot(report: Extract<InstallEvent, { type: 'agent-started' }>): string {
  const agent = `agent started ${(report.atMs / 1000).toFixed(2)} s after the kernel`;
  if (report.userSpaceAtMs === null) return agent;
  return `${agent}, ${((report.atMs - report.userSpaceAtMs) / 1000).toFixed(2)} s after the first process`;
}
