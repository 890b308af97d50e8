import { setTimeout as delay } from 'node:timers/promises';
import { guestProgress, type GuestProgress, type InstanceInfo } from '#shared/contract/instance.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/stream/lines.ts';
import { isConnectionLoss } from '../../client/job-events.ts';
import type { NodeClient } from '../../client/node-client.ts';
import { sanitizeLine } from '../../render/sanitize.ts';
import type { Context } from '../../terminal/context.ts';
import type { SubmitOptions } from '../submit.ts';

/** Time until a daemon that was restarted meanwhile is asked again. */
const RECONNECT_MS = 250;
const MAX_LINE_CHARACTERS = 64 * 1024;

export interface WaitReadyOptions {
  /** Seconds. */
  readonly waitReady?: number;
  /** A degraded boot is a failed one. */
  readonly degradedFails?: boolean;
}

/** @throws AppError USAGE when there will be nobody to wait for */
export function refuseWaitWithout(
  options: WaitReadyOptions & SubmitOptions,
  others: Readonly<Record<string, boolean>> = {},
  isWaiting = false,
): void {
  if (options.waitReady === undefined) {
    if (options.degradedFails !== true || isWaiting) return;
    throw new AppError('USAGE', '--degraded-fails waits for nothing by itself', {
      hint: 'give --wait-ready too',
    });
  }
  const against = { '--submit': options.submit, '--dry-run': options.dryRun, ...others };
  const [other] = Object.entries(against).find(([, isGiven]) => isGiven === true) ?? [];
  if (other === undefined) return;
  throw new AppError('USAGE', `--wait-ready and ${other} contradict each other`, {
    hint: 'leave out one of them',
  });
}

/**
 * Waits for the verdict of the guest's cloud-init; of a guest whose cloud-init tells nothing, until
 * it says that it is up. Ends at once where it is known that it never will.
 * @throws AppError GUEST_NOT_READY that tells what is known of the guest, GUEST_BOOT_FAILED with
 *   cloud-init's own errors
 */
export async function waitReady(
  context: Context,
  name: string,
  limitS: number,
  degradedFails = false,
): Promise<void> {
  const client = await context.client();
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  const timeOver = new Error('the time to wait for the guest is over');
  using deadline = startDeadline(left.signal, limitS * 1000, () => timeOver);
  context.note(`waiting up to ${limitS} s until ${name} says that it is up`);
  let stage: string | null = null;
  try {
    for await (const info of infos(client, name, deadline.signal)) {
      if (isUp(info, context, degradedFails)) return;
      if (info.boot?.stage != null && info.boot.stage !== stage) {
        stage = info.boot.stage;
        context.note(`${name}: cloud-init is at ${stage}`);
      }
      const silence = whySilent(info);
      if (info.running === null || silence) throw notReady(info, limitS, silence);
    }
  } catch (error) {
    if (left.signal.aborted) {
      throw new AppError('INTERRUPTED', `stopped waiting for ${name}; the instance runs on`, {
        hint: `gnt-instance info ${name} tells how it is; when it is up, gnt-instance ssh ${name} logs in`,
        cause: error,
      });
    }
    if (deadline.signal.reason !== timeOver) throw error;
    throw notReady(await client.instance(name), limitS, null);
  } finally {
    release();
  }
}

/** Now, and whenever the guest has said something; goes on over a restart of the daemon. */
async function* infos(
  client: NodeClient,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<InstanceInfo> {
  for (;;) {
    try {
      const response = await client.guestProgress(name, signal);
      let info: InstanceInfo | null = null;
      for await (const line of readLines(response, MAX_LINE_CHARACTERS)) {
        const { isRunning, ...said } = guestProgress.parse(parseJson(line));
        // Asking for all of the instance anew takes longer than the line took.
        if (isRunning && info?.running != null) info = withProgress(info, info.running, said);
        else info = await client.instance(name);
        yield info;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isConnectionLoss(error)) throw error;
    }
    await delay(RECONNECT_MS, undefined, { signal });
    yield await client.instance(name);
  }
}

function withProgress(
  info: InstanceInfo,
  running: NonNullable<InstanceInfo['running']>,
  { readyAtMs, boot, lifecycle }: Pick<GuestProgress, 'readyAtMs' | 'boot' | 'lifecycle'>,
): InstanceInfo {
  return { ...info, running: { ...running, readyAtMs }, boot, lifecycle };
}

/** @throws AppError GUEST_BOOT_FAILED */
function isUp(info: InstanceInfo, context: Context, degradedFails: boolean): boolean {
  const { name, running, boot, lifecycle } = info;
  if (running !== null && lifecycle != null) return isOperational(name, lifecycle, context);
  if (running === null || boot?.status === 'running') return false;
  if (boot === null) {
    if (running.readyAtMs === null) return false;
    const tookMs = running.readyAtMs - running.startedAtMs;
    context.note(`${name} is up, ${(tookMs / 1000).toFixed(1)} s after its start`);
    return true;
  }
  if (boot.status === 'error' || (boot.status === 'degraded' && degradedFails)) {
    const how = boot.status === 'error' ? 'failed' : 'is degraded';
    const faults = [...boot.errors, ...(degradedFails ? boot.recoverableErrors : [])];
    throw new AppError(
      'GUEST_BOOT_FAILED',
      `cloud-init of ${name} ${how}: ${faults.map(sanitizeLine).join('; ')}`,
      {
        hint: `the instance runs; look at it with gnt-instance info ${name}, or inside with cloud-init status --long`,
        details: { instance: name, boot },
      },
    );
  }
  for (const fault of boot.recoverableErrors)
    context.warn(`cloud-init of ${name}: ${sanitizeLine(fault)}`);
  context.note(`${name} is up: cloud-init is ${boot.status}`);
  return true;
}

/** @throws AppError SCRIPT_STRANDED */
function isOperational(
  name: string,
  { state, reason }: NonNullable<InstanceInfo['lifecycle']>,
  context: Context,
): boolean {
  if (state === 'stranded' || state === 'failed') {
    throw new AppError('SCRIPT_STRANDED', `${name} is ${state}: ${sanitizeLine(reason ?? '')}`, {
      hint: `gnt-instance audit ${name} shows what its scripts did`,
      details: { instance: name },
    });
  }
  if (state === 'operational') context.note(`${name} is operational`);
  return state === 'operational';
}

interface Silence {
  readonly reason: string;
  readonly hint: string;
}

/** Why a guest with a stock cloud-init will never say that it is up; null when it can. */
function whySilent(info: InstanceInfo): Silence | null {
  const { communication, dialects, cloudInit, hvparams, seedDisk, metadataToken } = info;
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
  if (hvparams.boot_report === 'no') {
    return {
      reason: 'its cloud-init is not asked to (boot_report=no)',
      hint: 'take it back with gnt-instance modify -H boot_report=default',
    };
  }
  if (metadataToken === 'required' && !seedDisk && cloudInit.datasource !== 'Ec2') {
    return {
      reason: `cloud-init with ${cloudInit.datasource ?? 'no datasource'} sends no session token, which is required here, and reads nothing`,
      hint: 'give --seed-disk yes, or ec2 first in --dialects with -H boot_report=user-data; or --metadata-token optional',
    };
  }
  if (cloudInit.datasource !== 'Ec2' || hvparams.boot_report === 'user-data') return null;
  return {
    reason: 'cloud-init with EC2 reads no vendor-data, which would ask it to',
    hint: 'give -H boot_report=user-data, which asks it behind the user data; or leave the seed disk on, or put openstack or nocloud before ec2 in --dialects',
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
    `${name} did not say within ${limitS} s that it is up: ${whatIsKnown(info)}`,
    {
      hint: `it runs on: gnt-instance console ${name} shows it; one without cloud-init never says that it is up`,
      details,
    },
  );
}

function whatIsKnown({ boot, status, explanation }: InstanceInfo): string {
  if (boot?.stage != null) return `its cloud-init is at ${boot.stage}`;
  return boot === null && status === 'running'
    ? 'nothing was heard of a cloud-init in it'
    : explanation;
}
