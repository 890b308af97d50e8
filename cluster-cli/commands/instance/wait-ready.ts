import { setTimeout as delay } from 'node:timers/promises';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';

/**
 * The guest says over the channel that it is up; noded answers from memory, so asking every second
 * is cheap.
 */
const READY_POLL_MS = 1000;

/**
 * Waits until a guest that runs says that it is up, unless it is known that it never will.
 * @throws AppError GUEST_NOT_READY that tells what is known of the guest
 */
export async function waitReady(context: Context, name: string, limitS: number): Promise<void> {
  const client = await context.client();
  const deadlineMs = context.clock.monotonicMs() + limitS * 1000;
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  context.note(`waiting up to ${limitS} s until ${name} says that it is up`);
  try {
    for (;;) {
      const info = await client.instance(name);
      if (info.running?.readyAtMs != null) {
        const tookMs = info.running.readyAtMs - info.running.startedAtMs;
        context.note(`${name} is up, ${(tookMs / 1000).toFixed(1)} s after its start`);
        return;
      }
      const isOver = info.running === null || context.clock.monotonicMs() >= deadlineMs;
      const silence = whySilent(info);
      if (isOver || silence) throw notReady(info, limitS, silence);
      await delay(READY_POLL_MS, undefined, { signal: left.signal });
    }
  } catch (error) {
    if (!left.signal.aborted) throw error;
    throw new AppError('INTERRUPTED', `stopped waiting for ${name}; the instance runs on`, {
      hint: `gnt-instance info ${name} tells how it is`,
      cause: error,
    });
  } finally {
    release();
  }
}

interface Silence {
  readonly reason: string;
  readonly hint: string;
}

/** Why a guest with a stock cloud-init will never say that it is up; null when it can. */
function whySilent({ communication, dialects, cloudInit }: InstanceInfo): Silence | null {
  if (!communication) {
    return {
      reason: 'its channel is off in normal runs',
      hint: 'without --communication=yes a guest cannot say that it is up',
    };
  }
  if (!dialects.includes('ganeti')) {
    return {
      reason: 'the dialect ganeti is not served, which has the path for it',
      hint: 'leave ganeti among --dialects',
    };
  }
  if (cloudInit.datasource !== 'Ec2') return null;
  return {
    reason: 'cloud-init with EC2 reads no vendor-data, which would ask it to',
    hint: 'leave the seed disk on, or put openstack or nocloud before ec2 in --dialects',
  };
}

function notReady(info: InstanceInfo, limitS: number, silence: Silence | null): AppError {
  const { name, running, explanation } = info;
  const details = { instance: name, cloudInit: info.cloudInit.reason };
  if (running === null) {
    return new AppError(
      'GUEST_NOT_READY',
      `${name} stopped before it said that it is up: ${explanation}`,
      { hint: `look at it with: gnt-instance console ${name}`, details },
    );
  }
  if (silence) {
    return new AppError(
      'GUEST_NOT_READY',
      `${name} runs, but will not say that it is up: ${silence.reason}`,
      {
        hint: silence.hint,
        details,
      },
    );
  }
  return new AppError(
    'GUEST_NOT_READY',
    `${name} did not say within ${limitS} s that it is up: ${explanation}`,
    { hint: `look at it with: gnt-instance console ${name}`, details },
  );
}
