import { setTimeout as sleep } from 'node:timers/promises';
import { orAborted } from '#shared/abort/abortable.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Machine } from '../../vmm/machine.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

const POLL_MS = 100;
const ASK_MS = 500;
/** Limit for firmware and boot loader of a guest that has just started. */
const NO_ACPI_MS = 10_000;
/** A press is lost until a process in the guest opens the button. Further presses are harmless. */
const PRESS_AGAIN_MS = 15_000;

type PowerOffKeeper = Pick<MachineKeeper, 'kill' | 'whenGone'>;
interface PowerOffContext {
  /** Returns whether the guest reported its shutdown. It then has the whole timeout. */
  readonly isObeying?: () => boolean;
  readonly signal: AbortSignal;
  readonly report: Pick<JobContext['report'], 'log'>;
}

/**
 * Presses the power button as soon as the guest listens, and cuts the power after the timeout. Cuts
 * it earlier when the guest cannot react: it is paused at a failed write, even after a retry, or
 * runs no operating system with ACPI. Resolves after the cleanup of the QEMU process.
 */
export async function powerOff(
  { machine, kind, instanceName }: KeptMachine,
  timeoutS: number,
  { keeper, clock }: { readonly keeper: PowerOffKeeper; readonly clock: Clock },
  context: PowerOffContext,
): Promise<void> {
  const why =
    timeoutS > 0 && kind === 'run' ? await askGuest(machine, timeoutS, clock, context) : null;
  if (machine.isRunning()) {
    if (why !== null) context.report.log(`${instanceName} ${why}, cutting the power`, 'warn');
    await keeper.kill(machine.uuid);
  }
  await keeper.whenGone(machine.uuid);
}

/** @returns the reason to cut the power; null when the process has ended */
async function askGuest(
  machine: Machine,
  timeoutS: number,
  clock: Clock,
  { signal, isObeying = () => false }: PowerOffContext,
): Promise<string | null> {
  const begunMs = clock.monotonicMs();
  let pressedMs = Number.NEGATIVE_INFINITY;
  let askedMs = Number.NEGATIVE_INFINITY;
  let withAcpiMs = begunMs;
  // Limits an answer of QEMU by the guest's timeout. Errors count as no answer.
  const within = async <T>(answer: Promise<T>): Promise<T | undefined> => {
    const leftMs = Math.max(0, begunMs + timeoutS * 1000 - clock.monotonicMs());
    using deadline = startDeadline(signal, leftMs, () => new Error('has no time left'));
    try {
      return await orAborted(answer, deadline.signal);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  };
  if (machine.halt !== null) await within(machine.resume());
  while (machine.isRunning()) {
    const now = clock.monotonicMs();
    if (machine.halt !== null)
      return `is paused at a failed write (${machine.halt.reason}) and cannot obey`;
    if (now - begunMs >= timeoutS * 1000) return `did not obey within ${timeoutS} s`;
    if (now - withAcpiMs >= NO_ACPI_MS && !isObeying())
      return 'runs no operating system that reacts to the power button (ACPI)';
    if (now - askedMs >= ASK_MS) {
      askedMs = now;
      const button = await within(machine.powerButton());
      if (button !== 'no-acpi') withAcpiMs = clock.monotonicMs();
      const isHeard = button === 'heard' || button === undefined;
      if (isHeard && now - pressedMs >= PRESS_AGAIN_MS) {
        pressedMs = now;
        await within(machine.powerdown());
      }
    }
    await sleep(POLL_MS, undefined, { signal });
  }
  return null;
}
