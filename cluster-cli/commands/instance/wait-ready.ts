import { setTimeout as delay } from 'node:timers/promises';
import { guestProgress, type GuestProgress, type InstanceInfo } from '#shared/contract/instance.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/text/lines.ts';
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
    throw new AppError('USAGE', '--degraded-fails requires --wait-ready', {
      hint: 'Add --wait-ready',
    });
  }
  const against = { '--submit': options.submit, '--dry-run': options.dryRun, ...others };
  const [other] = Object.entries(against).find(([, isGiven]) => isGiven === true) ?? [];
  if (other === undefined) return;
  throw new AppError('USAGE', `--wait-ready and ${other} exclude each other`, {
    hint: `Omit ${other}`,
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
  const timeOver = new Error('timeout');
  using deadline = startDeadline(left.signal, limitS * 1000, () => timeOver);
  context.note(`waiting up to ${limitS} s until ${name} is ready`);
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
      throw new AppError('INTERRUPTED', `stopped waiting for ${name}; the instance keeps running`, {
        hint: `gnt-instance info ${name} shows its state; gnt-instance ssh ${name} logs in when it is ready`,
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
    context.note(`${name} is ready, ${(tookMs / 1000).toFixed(1)} s after its start`);
    return true;
  }
  if (boot.status === 'error' || (boot.status === 'degraded' && degradedFails)) {
    const how = boot.status === 'error' ? 'failed' : 'is degraded';
    const faults = [...boot.errors, ...(degradedFails ? boot.recoverableErrors : [])];
    throw new AppError(
      'GUEST_BOOT_FAILED',
      `cloud-init of ${name} ${how}: ${faults.map(sanitizeLine).join('; ')}`,
      {
        hint: `The instance keeps running: gnt-instance info ${name}, or cloud-init status --long in the guest`,
        details: { instance: name, boot },
      },
    );
  }
  for (const fault of boot.recoverableErrors)
    context.warn(`cloud-init of ${name}: ${sanitizeLine(fault)}`);
  context.note(`${name} is ready: cloud-init is ${boot.status}`);
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
      hint: `gnt-instance audit ${name} shows the output of its scripts`,
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
  const { communication, dialects, cloudInit, hvparams, seedDisk, metadataToken } = asItRuns(info);
  if (!communication) {
    return {
      reason: 'its channel is off in normal runs',
      hint: `gnt-instance modify -C yes ${info.name} turns the channel on`,
    };
  }
  if (!dialects.includes('ganeti')) {
    return {
      reason: 'the dialect ganeti, which takes the report, is not served',
      hint: 'Add ganeti to --dialects',
    };
  }
  if (hvparams.boot_report === 'no') {
    return {
      reason: 'cloud-init is not asked to report (boot_report=no)',
      hint: `gnt-instance modify -H boot_report=none ${info.name}`,
    };
  }
  if (metadataToken === 'required' && !seedDisk && cloudInit.datasource !== 'Ec2') {
    return {
      reason: `session tokens are required, and cloud-init with ${cloudInit.datasource ?? 'no datasource'} sends none`,
      hint: 'Give --seed-disk yes, or --metadata-token optional, or ec2 first in --dialects with -H boot_report=user-data',
    };
  }
  if (cloudInit.datasource !== 'Ec2' || hvparams.boot_report === 'user-data') return null;
  return {
    reason:
      'cloud-init with the EC2 datasource reads no vendor data, and so is not asked to report',
    hint: 'Give -H boot_report=user-data, or --seed-disk yes, or openstack or nocloud before ec2 in --dialects',
  };
}

function notReady(info: InstanceInfo, limitS: number, silence: Silence | null): AppError {
  const { name, running, explanation } = info;
  const details = { instance: name, cloudInit: info.cloudInit.reason };
  if (running === null) {
    return new AppError('GUEST_NOT_READY', `${name} stopped before it was ready: ${explanation}`, {
      hint: `gnt-instance startup ${name}, then gnt-instance console ${name}`,
      details,
    });
  }
  if (silence) {
    return new AppError(
      'GUEST_NOT_READY',
      `${name} runs, but cannot report that it is ready: ${silence.reason}`,
      {
        hint: silence.hint,
        details,
      },
    );
  }
  return new AppError(
    'GUEST_NOT_READY',
    `${name} was not ready within ${limitS} s: ${whatIsKnown(info)}`,
    {
      hint: `The instance keeps running: gnt-instance console ${name}. A guest without cloud-init reports nothing by itself`,
      details,
    },
  );
}

function whatIsKnown({ boot, status, explanation }: InstanceInfo): string {
  if (boot?.stage != null) return `cloud-init is at ${boot.stage}`;
  return boot === null && status === 'running' ? 'cloud-init has reported nothing' : explanation;
}
