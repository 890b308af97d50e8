import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { Lifecycles } from './lifecycles-contract.ts';

const POLL_MS = 100;
/** So long an agent may be silent before the power button is pressed instead. */
const SILENCE_MS = 15_000;

interface RebootingMachine {
  readonly instanceName: string;
  readonly machine: {
    readonly uuid: string;
    readonly guestResets: number;
    isRunning(): boolean;
  };
}

/**
 * Has the guest reboot itself, its decommission list first; QEMU stays, and with it disks and view.
 * @param timeoutS for its operating system, besides what the list may take
 * @returns false when it did not: it is silent, too slow, or off
 */
export async function rebootGuest(
  { machine, instanceName }: RebootingMachine,
  timeoutS: number,
  {
    lifecycles,
    clock,
  }: {
    readonly lifecycles: Pick<Lifecycles, 'announce' | 'isListening' | 'state' | 'reset'>;
    readonly clock: Clock;
  },
  { signal, report }: Pick<JobContext, 'signal' | 'report'>,
): Promise<boolean> {
  const { uuid } = machine;
  const resets = machine.guestResets;
  const begunMs = clock.monotonicMs();
  const scriptsS = await lifecycles.announce(uuid, 'reboot');
  let isObeying = false;
  while (machine.isRunning()) {
    if (machine.guestResets > resets) {
      lifecycles.reset(uuid);
      report.log(`${instanceName} reboots itself`);
      return true;
    }
    const state = lifecycles.state(uuid);
    isObeying ||= state === 'decommissioning' || state === 'decommissioned';
    // A guest that was that fast has begun anew, which an adopted QEMU may not have told.
    if (isObeying && (state === 'booting' || state === 'operational')) return true;
    const passedMs = clock.monotonicMs() - begunMs;
    if (!isObeying && passedMs >= SILENCE_MS) {
      report.log(
        `GUEST_AGENT_SILENT: the agent of ${instanceName} does not answer, pressing the power button`,
        'warn',
      );
      return false;
    }
    if (passedMs >= (timeoutS + scriptsS) * 1000) {
      report.log(`${instanceName} did not reboot within ${timeoutS + scriptsS} s`, 'warn');
      return false;
    }
    await sleep(POLL_MS, undefined, { signal });
  }
  return false;
}
