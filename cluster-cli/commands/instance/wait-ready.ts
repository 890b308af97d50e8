import { setTimeout as delay } from 'node:timers/promises';
import { SILENT_AGENT } from '#shared/contract/lifecycle.ts';
import { guestProgress, type GuestProgress, type InstanceInfo } from '#shared/contract/instance.ts';
import { explainSilence, type Silence } from '#shared/contract/boot-silence.ts';
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

/** Delay before a request to a restarted daemon. */
const RECONNECT_MS = 250;
const MAX_LINE_CHARACTERS = 64 * 1024;

export interface WaitReadyOptions {
  /** Seconds. */
  readonly waitReady?: number;
  /** Treat a degraded boot as failed. */
  readonly degradedFails?: boolean;
}

/** @throws AppError USAGE if no guest will start */
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
 * Waits for the result of the guest's cloud-init, or for another ready report if cloud-init reports
 * nothing. Ends at once if the guest can never report.
 * @param silence why the operator's documents keep cloud-init from reporting
 * @throws AppError GUEST_NOT_READY with the known state of the guest, GUEST_BOOT_FAILED with
 * cloud-init's own errors
 */
export async function waitReady(
  context: Context,
  name: string,
  limitS: number,
  degradedFails = false,
  silence: Silence | null = null,
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
      const known = whySilent(info, silence);
      if (info.running === null || known) throw notReady(info, limitS, known);
    }
  } catch (error) {
    if (left.signal.aborted) {
      throw new AppError('INTERRUPTED', `stopped waiting for ${name}; the instance keeps running`, {
        hint: `gnt-instance info ${name} shows its state; gnt-instance ssh ${name} logs in when it is ready`,
        cause: error,
      });
    }
    if (deadline.signal.reason !== timeOver) throw error;
    throw notReady(await client.ask('GET /v1/instances/{name}', { name }), limitS, null);
  } finally {
    release();
  }
}

/** Yields the instance now and after each report of the guest. Survives a restart of the daemon. */
async function* infos(
  client: NodeClient,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<InstanceInfo> {
  for (;;) {
    try {
      const response = await client.open('GET /v1/instances/{name}/boot', { name, signal });
      let info: InstanceInfo | null = null;
      for await (const line of readLines(response, MAX_LINE_CHARACTERS)) {
        const { isRunning, ...said } = guestProgress.parse(parseJson(line));
        // Use the line: a new request for the instance would take longer.
        if (isRunning && info?.running != null) info = withProgress(info, info.running, said);
        else info = await client.ask('GET /v1/instances/{name}', { name });
        yield info;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isConnectionLoss(error)) throw error;
    }
    await delay(RECONNECT_MS, undefined, { signal });
    yield await client.ask('GET /v1/instances/{name}', { name });
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

/**
 * Returns why a guest with a stock cloud-init will never report its boot; null if it can.
 * @param ofDocuments the reason in the documents of this command
 */
export function whySilent(info: InstanceInfo, ofDocuments: Silence | null): Silence | null {
  const run = asItRuns(info);
  const ofSettings = explainSilence({ ...run, datasource: run.cloudInit.datasource });
  // The agent of run lists reports by itself.
  return ofSettings ?? (info.lifecycle == null ? ofDocuments : null);
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

function whatIsKnown({ boot, lifecycle, status, explanation }: InstanceInfo): string {
  const isSilent = lifecycle?.state === 'booting' && lifecycle.script === null;
  if (isSilent && boot?.status !== 'running') return SILENT_AGENT;
  if (boot?.stage != null) return `cloud-init is at ${boot.stage}`;
  return boot === null && status === 'running' ? 'cloud-init has reported nothing' : explanation;
}
