import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

const POLL_MS = 100;

type PowerOffKeeper = Pick<MachineKeeper, 'kill' | 'whenGone'>;
interface PowerOffContext {
  readonly signal: AbortSignal;
  readonly report: Pick<JobContext['report'], 'log'>;
}

/**
 * Asks the guest to power off; after the timeout the power is cut, and at once when the guest stands
 * still at a write that failed: it cannot obey. Such a guest is first let go on, since there may be
 * room again. Resolves when nothing of the machine is left.
 */
export async function powerOff(
  { machine, kind, instanceName }: KeptMachine,
  timeoutS: number,
  { keeper, clock }: { readonly keeper: PowerOffKeeper; readonly clock: Clock },
  context: PowerOffContext,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + timeoutS * 1000;
  if (timeoutS > 0 && kind === 'run') {
    if (machine.halt !== null) await machine.resume().catch(() => undefined);
    await machine.powerdown().catch(() => undefined); // a guest that cannot be asked is ended below
    while (machine.isRunning() && machine.halt === null && clock.monotonicMs() < deadlineMs) {
      await sleep(POLL_MS, undefined, { signal: context.signal });
    }
  }
  if (machine.isRunning()) {
    if (timeoutS > 0) {
      const why =
        machine.halt === null
          ? `did not obey within ${timeoutS} s`
          : `stands still at a write that failed (${machine.halt.reason}) and cannot obey`;
      context.report.log(`${instanceName} ${why}, cutting the power`, 'warn');
    }
    await keeper.kill(machine.uuid);
  }
  await keeper.whenGone(machine.uuid);
}
