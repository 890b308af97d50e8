import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { orAborted } from '#shared/abort/abortable.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Machine } from '../hypervisor/machine.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import { agentCode } from '../appliance/agent-code.ts';
import { AgentWord } from '../appliance/agent-word.ts';
import type { InstallLog } from '../host/install-log.ts';

export interface MediumRunInput {
  readonly installId: string;
  readonly machine: Machine;
  readonly log: InstallLog;
  readonly context: JobContext;
  readonly subscribe: (listener: (event: MetadEvent['event']) => void) => () => void;
}

/**
 * Follows a machine that installs itself from a medium. A stock installer reports nothing: it is
 * done when the guest powers off or reboots. A medium that knows install/events may report, and a
 * failure that it reports is one.
 * @returns what happened, in words
 * @throws AppError the medium's own, APPLIANCE_CRASHED, or the signal's reason
 */
export async function followMedium(input: MediumRunInput): Promise<string> {
  const { machine, context, log } = input;
  const word = new AgentWord();
  const refused = Promise.withResolvers<never>();
  const unsubscribe = input.subscribe((event) => {
    if (event.type !== 'install' || event.installId !== input.installId) return;
    // A medium need not sign, since nothing that it says makes it succeed.
    const report = 'body' in event.event ? word.take(event.event) : event.event;
    if (report === null) return;
    if (report.type === 'log') {
      log.appendOutput(report.line);
      context.report.output('os-scripts', log.tail().at(-1) ?? '');
    }
    if (report.type === 'result' && report.outcome.status === 'failure') {
      const { code, message } = report.outcome;
      refused.reject(new AppError(agentCode(code), log.mask(message)));
    }
  });
  try {
    const end = Promise.race([machine.exited, refused.promise]);
    const exit = await orAborted(end, context.signal);
    if (exit.reason === 'guest-shutdown' || exit.reason === 'guest-reboot') {
      return exit.reason === 'guest-reboot' ? 'the medium rebooted' : 'the medium powered off';
    }
    for (const line of exit.consoleTail.split('\n').slice(-30))
      log.append(`console: ${line.trimEnd()}`);
    throw new AppError(
      'APPLIANCE_CRASHED',
      `the machine ended before its medium was done (${exit.reason})`,
      {
        details: { stderr: exit.stderrTail },
      },
    );
  } finally {
    unsubscribe();
    await machine.kill();
  }
}
