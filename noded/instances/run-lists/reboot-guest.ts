import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { LifecycleState } from '#shared/contract/lifecycle.ts';
import type { JobReporter } from '../../jobs/job-handler.ts';
import type { Lifecycles } from './lifecycles-contract.ts';
import { undecommissionedReason } from './script-refusals.ts';

const POLL_MS = 100;
/** Silence of an agent after which the power button is pressed. */
const SILENCE_MS = 15_000;

interface RebootingMachine {
  readonly instanceName: string;
  readonly machine: {
    readonly uuid: string;
    readonly guestResets: number;
    isRunning(): boolean;
  };
}

/** States of a guest that goes down. `failed`: its decommission list exceeded its limit. */
const GOING_DOWN: readonly LifecycleState[] = ['decommissioning', 'decommissioned', 'failed'];

export interface RebootedGuest {
  /** Reason why its decommission list failed, or null. */
  readonly failure: string | null;
}

/**
 * Makes the guest run its decommission list and reboot within the same QEMU process, which keeps
 * disks and view.
 * @param timeoutS for its operating system, in addition to the list's limit
 * @returns null when it did not reboot: it is silent, too slow, or off
 */
export async function rebootGuest(
  { machine, instanceName }: RebootingMachine,
  timeoutS: number,
  {
    lifecycles,
    clock,
  }: {
    readonly lifecycles: Pick<Lifecycles, 'announce' | 'state' | 'current' | 'reset'>;
    readonly clock: Clock;
  },
  { signal, report }: { readonly signal: AbortSignal; readonly report: Pick<JobReporter, 'log'> },
): Promise<RebootedGuest | null> {
  const { uuid } = machine;
  const resets = machine.guestResets;
  const begunMs = clock.monotonicMs();
  const scriptsS = await lifecycles.announce(uuid, 'reboot');
  let isObeying = false;
  let failure: string | null = null;
  while (machine.isRunning()) {
    if (machine.guestResets > resets) {
      failure = failureBefore(lifecycles, uuid, failure);
      lifecycles.reset(uuid);
      report.log(`${instanceName} reboots itself`);
      return { failure };
    }
    const state = lifecycles.state(uuid);
    isObeying ||= state !== undefined && GOING_DOWN.includes(state);
    // A fast guest already booted again. An adopted QEMU process may not have reported the reset.
    if (isObeying && (state === 'booting' || state === 'operational')) return { failure };
    failure = failureBefore(lifecycles, uuid, failure);
    const passedMs = clock.monotonicMs() - begunMs;
    if (!isObeying && passedMs >= SILENCE_MS) {
      report.log(
        `GUEST_AGENT_SILENT: the agent of ${instanceName} does not answer, pressing the power button`,
        'warn',
      );
      return null;
    }
    if (passedMs >= (timeoutS + scriptsS) * 1000) {
      report.log(`${instanceName} did not reboot within ${timeoutS + scriptsS} s`, 'warn');
      return null;
    }
    await sleep(POLL_MS, undefined, { signal });
  }
  return null;
}

/** @param before result of the last look, which a guest that boots again has forgotten */
function failureBefore(
  lifecycles: Pick<Lifecycles, 'state' | 'current'>,
  uuid: string,
  before: string | null,
): string | null {
  const state = lifecycles.state(uuid);
  if (state === 'booting' || state === 'operational') return before;
  if (state === 'decommissioning') return 'its guest rebooted before its decommission list ended';
  return undecommissionedReason({ uuid, lifecycle: null }, lifecycles);
}
