import { spawn } from 'node:child_process';
import { closeSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { SYSTEM_PATH } from '#shared/process/run.ts';
import type { ControlChannel } from './control-request.ts';
import { askStatus } from './metad-client.ts';
import { boundLog, lastLogLine, openLog } from '../host/metad-log.ts';
import { planMetadCommand } from './metad-sandbox.ts';
import {
  identifyProcess,
  isAlive,
  isInNetworkNamespace,
  type ProcessIdentity,
  userOf,
} from '../host/process-info.ts';
import type { SystemUser } from '../host/system-user.ts';

export interface SupervisorOptions {
  readonly paths: RootPaths;
  readonly command: string;
  readonly args: readonly string[];
  readonly programDir: string;
  readonly user: SystemUser;
  readonly channel: ControlChannel;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A new metad answers; its views are gone. */
  readonly onRestarted: () => void;
}

/** A machine that builds and boots VMs may need long for a node process to come up. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 100;
const WATCH_MS = 500;
const ADOPT_TIMEOUT_MS = 5000;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/** A metad that answers nothing for three of these is hung. Loaded machines are slow, but not for minutes. */
const STATUS_TIMEOUT_MS = 30_000;
const STATUS_INTERVAL_MS = 15_000;
const MAX_SILENT_CHECKS = 3;
/** One that lived this long failed for a new reason. */
const STABLE_MS = 30_000;

/**
 * Keeps exactly one metad running.
 *
 * INVARIANTS: at most one `#watch` loop runs; `#process` is what it watches; after `release` nothing is started any more.
 */
export class MetadSupervisor {
  readonly #options: SupervisorOptions;
  readonly #logFile: string;
  readonly #released = new AbortController();
  #process: ProcessIdentity | undefined;
  #watching: Promise<void> | undefined;
  restarts = 0;
  adopted = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#logFile = join(options.paths.logDir, 'metad.log');
  }

  get pid(): number | null {
    return this.#process && isAlive(this.#process) ? this.#process.pid : null;
  }

  /** @throws AppError METAD_UNAVAILABLE with what it said last */
  async start(): Promise<void> {
    const found = await this.#findRunning();
    this.adopted = found !== undefined;
    this.#process = found ?? (await this.#launch());
    this.#watching = this.#watch();
    // Not waited for: a hung metad would hold the end.
    this.#watchAnswers().catch((error: unknown) =>
      this.#options.logger.error('metad.watch-failed', { reason: messageOf(error) }),
    );
  }

  /** Leaves metad running and looks after it no longer. */
  async release(): Promise<void> {
    this.#released.abort();
    await this.#watching;
  }

  async stop(): Promise<void> {
    await this.release();
    if (this.#process) await this.#end(this.#process);
    rmSync(this.#options.paths.metadControlSocket, { force: true });
  }

  /** The metad that a dead noded left behind, if it is the right program in the right place. */
  async #findRunning(): Promise<ProcessIdentity | undefined> {
    const { channel, logger, user } = this.#options;
    let pid: number;
    try {
      pid = (await askStatus(channel, ADOPT_TIMEOUT_MS)).pid;
    } catch (error) {
      if (!isAppError(error, 'METAD_UNAVAILABLE')) throw error;
      return undefined;
    }
    const found = identifyProcess(pid);
    // What it says of itself is checked: no foreign process is adopted, and none is ever killed.
    if (!found || userOf(pid) !== user.uid) return undefined;
    if (isInNetworkNamespace(pid, this.#namespacePath())) {
      logger.info('metad.adopted', { metadPid: pid });
      return found;
    }
    logger.warn('metad.in-old-namespace', { metadPid: pid });
    await this.#end(found);
    return undefined;
  }

  #namespacePath(): string {
    return `/run/netns/${this.#options.paths.networkNamespace}`;
  }

  async #launch(): Promise<ProcessIdentity> {
    const { paths, command, args, programDir, user } = this.#options;
    const planned = planMetadCommand({
      networkNamespace: paths.networkNamespace,
      user,
      programDir,
      socketDir: paths.metadDir,
      command,
      args,
    });
    rmSync(paths.metadControlSocket, { force: true });
    const log = openLog(this.#logFile);
    let exit: string | undefined;
    try {
      // nsenter, unshare, sh and setpriv replace each other: the child's pid becomes metad's.
      const child = spawn(planned.command, planned.args, {
        cwd: '/',
        env: { PATH: SYSTEM_PATH },
        detached: true,
        stdio: ['ignore', 'ignore', log],
      });
      child.unref();
      child.on('error', (error) => (exit = error.message));
      child.on('exit', (code, signal) => (exit = `it ended with ${signal ?? `status ${code}`}`));
      const started = child.pid === undefined ? undefined : identifyProcess(child.pid);
      return await this.#waitUntilReady(started, () => exit);
    } finally {
      closeSync(log);
    }
  }

  async #waitUntilReady(
    started: ProcessIdentity | undefined,
    exitReason: () => string | undefined,
  ): Promise<ProcessIdentity> {
    const { channel, clock, logger } = this.#options;
    const deadline = clock.monotonicMs() + START_TIMEOUT_MS;
    let reason = 'it does not answer';
    while (started && exitReason() === undefined && clock.monotonicMs() < deadline) {
      try {
        const { pid } = await askStatus(channel, START_TIMEOUT_MS);
        if (pid === started.pid) {
          logger.info('metad.started', { metadPid: pid });
          return started;
        }
        reason = `process ${pid} answers in its place`;
      } catch (error) {
        if (!isAppError(error)) throw error;
        reason = error.message;
      }
      await delay(POLL_MS);
    }
    if (started) await this.#end(started);
    const said = lastLogLine(this.#logFile);
    throw new AppError(
      'METAD_UNAVAILABLE',
      `gnt-metad did not start: ${exitReason() ?? reason}${said && `; it said: ${said}`}`,
      { hint: `see ${this.#logFile}` },
    );
  }

  /** A poll, since an adopted metad is no child of ours. */
  async #watch(): Promise<void> {
    const { signal } = this.#released;
    const { clock, logger } = this.#options;
    let backoffMs = FIRST_BACKOFF_MS;
    let startedAt = clock.monotonicMs();
    while (await pause(WATCH_MS, signal)) {
      boundLog(this.#logFile);
      if (this.#process && isAlive(this.#process)) continue;
      const livedMs = clock.monotonicMs() - startedAt;
      if (livedMs > STABLE_MS) backoffMs = FIRST_BACKOFF_MS;
      logger.error('metad.died', { livedMs, backoffMs, said: lastLogLine(this.#logFile) });
      if (!(await pause(backoffMs, signal))) return;
      backoffMs = Math.min(backoffMs * 2, MAX_BACKOFF_MS);
      startedAt = clock.monotonicMs();
      this.restarts += 1;
      try {
        this.#process = await this.#launch();
        this.#options.onRestarted();
      } catch (error) {
        logger.error('metad.start-failed', { reason: messageOf(error) });
      }
    }
  }

  /** Kills a metad that lives but does not answer; `#watch` starts another. */
  async #watchAnswers(): Promise<void> {
    const { signal } = this.#released;
    let silentChecks = 0;
    while (await pause(STATUS_INTERVAL_MS, signal)) {
      const asked = this.#process;
      try {
        await askStatus(this.#options.channel, STATUS_TIMEOUT_MS);
        silentChecks = 0;
      } catch (error) {
        if (!isAppError(error)) throw error;
        // One that is being started again is another matter.
        silentChecks = asked && isAlive(asked) && asked === this.#process ? silentChecks + 1 : 0;
      }
      if (silentChecks < MAX_SILENT_CHECKS || !asked || signal.aborted) continue;
      silentChecks = 0;
      this.#options.logger.error('metad.hung', { metadPid: asked.pid });
      kill(asked.pid, 'SIGKILL');
    }
  }

  async #end(target: ProcessIdentity): Promise<void> {
    const { clock } = this.#options;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const deadline = clock.monotonicMs() + STOP_TIMEOUT_MS;
      if (isAlive(target)) kill(target.pid, signal);
      while (isAlive(target) && clock.monotonicMs() < deadline) await delay(POLL_MS);
    }
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCodeOf(error) !== 'ESRCH') throw error;
  }
}

/** False when the signal ended it. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  try {
    await delay(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
