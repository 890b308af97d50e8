import { orAborted } from '#shared/abort/abortable.ts';
import { setAlarm } from '#shared/abort/alarm.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { MediumSuccess } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Machine, MachineExit } from '../../vmm/machine.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import { agentCode } from './agent-code.ts';
import { AgentWord } from './agent-word.ts';
import type { InstallLog } from '../../host/install-log.ts';

/** A report may arrive after the end of the QEMU process. */
const LATE_WORD_MS = 3_000;

export interface MediumRunInput {
  readonly installId: string;
  readonly machine: Machine;
  /** `--medium-success`. */
  readonly success: MediumSuccess;
  readonly log: InstallLog;
  readonly context: JobContext;
  readonly subscribe: (listener: (event: MetadEvent['event']) => void) => () => void;
}

/**
 * Follows an instance that installs itself from a medium, until the guest powers off or reboots.
 * Success requires a report at install/events, because an installer also powers off when it gives
 * up. With `success: 'poweroff'` the end is enough. A reported failure always counts.
 * @returns a summary
 * @throws AppError the medium's own, APPLIANCE_NO_RESULT, APPLIANCE_CRASHED, or the signal's reason
 */
export async function followMedium(input: MediumRunInput): Promise<string> {
  const { machine, context, log, success } = input;
  const heard = listen(input);
  try {
    const exit = await orAborted(Promise.race([machine.exited, heard.failed]), context.signal);
    if (exit.reason !== 'guest-shutdown' && exit.reason !== 'guest-reboot') {
      throw crashed(exit, log);
    }
    const end = exit.reason === 'guest-reboot' ? 'rebooted' : 'powered off';
    if (!heard.hasSucceeded()) await lateWord(heard);
    if (heard.hasSucceeded()) return `the medium reported success and ${end}`;
    if (success === 'poweroff') return `the medium ${end}, which counts as success`;
    log.keepConsole(exit.consoleTail);
    throw new AppError('APPLIANCE_NO_RESULT', `the medium ${end} without reporting a result`, {
      hint: 'Let the medium POST a result to /ganeti/latest/install/events, or accept its power-off as success: --medium-success=poweroff',
    });
  } finally {
    heard.stop();
    await machine.kill();
  }
}

interface Heard {
  readonly failed: Promise<never>;
  readonly succeeded: Promise<void>;
  hasSucceeded(): boolean;
  stop(): void;
}

function listen({ installId, context, log, subscribe }: MediumRunInput): Heard {
  const word = new AgentWord();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const succeeded = Promise.withResolvers<void>();
  let isSuccess = false;
  const stop = subscribe((event) => {
    if (event.type !== 'install' || event.installId !== installId) return;
    // A medium need not sign: only its own code runs in the guest.
    const report = 'body' in event.event ? word.take(event.event) : event.event;
    if (report === null) return;
    if (report.type === 'log') {
      log.appendOutput(report.line);
      context.report.output('medium', log.tail().at(-1) ?? '');
    }
    if (report.type !== 'result') return;
    if (report.outcome.status === 'success') {
      isSuccess = true;
      succeeded.resolve();
      return;
    }
    const { code, message } = report.outcome;
    failed.reject(new AppError(agentCode(code), log.mask(message)));
  });
  return {
    ...{ failed: failed.promise, succeeded: succeeded.promise, stop },
    hasSucceeded: () => isSuccess,
  };
}

/** Waits for a report after the guest's end. @throws AppError the medium's failure */
async function lateWord({ failed, succeeded }: Heard): Promise<void> {
  const none = Promise.withResolvers<void>();
  const alarm = setAlarm(LATE_WORD_MS, () => none.resolve());
  try {
    await Promise.race([failed, succeeded, none.promise]);
  } finally {
    alarm[Symbol.dispose]();
  }
}

function crashed(exit: MachineExit, log: InstallLog): AppError {
  log.keepConsole(exit.consoleTail);
  const message = `the installation medium stopped before it was done (${exit.reason})`;
  return new AppError('APPLIANCE_CRASHED', message, { details: { stderr: exit.stderrTail } });
}
