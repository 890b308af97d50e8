import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

const POLL_MS = 100;

/**
 * Asks the guest to power off; after the timeout the power is cut. Resolves when nothing of the
 * machine is left.
 */
export async function powerOff(
  { machine, kind, instanceName }: KeptMachine,
  timeoutS: number,
  { keeper, clock }: { readonly keeper: MachineKeeper; readonly clock: Clock },
  context: JobContext,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + timeoutS * 1000;
  if (timeoutS > 0 && kind === 'run') {
    await machine.powerdown().catch(() => undefined); // a guest that cannot be asked is ended below
    while (machine.isRunning() && clock.monotonicMs() < deadlineMs) {
      await sleep(POLL_MS, undefined, { signal: context.signal });
    }
  }
  if (machine.isRunning()) {
    if (timeoutS > 0)
      context.report.log(
        `${instanceName} did not obey within ${timeoutS} s, cutting the power`,
        'warn',
      );
    await keeper.kill(machine.uuid);
  }
  await keeper.whenGone(machine.uuid);
}
