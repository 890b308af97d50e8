import { spawn } from 'node:child_process';
import { closeSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { ControlChannel } from './control-request.ts';
import { askStatus, ForeignMetad } from './metad-client.ts';
import { boundFile, openLog, readFileTail } from '../../host/bounded-log.ts';
import { planMetadCommand } from './metad-sandbox.ts';
import { isInNetworkNamespace } from '../../host/process-facts.ts';
import {
  endProcess,
  isAlive,
  type ProcessIdentity,
  readProcessIdentity,
  signalProcess,
} from '../../host/process-identity.ts';
import { findPredecessors, type MetadPlaces, recordMetad } from './metad-predecessors.ts';
import type { SystemUser } from '../../host/system-user.ts';

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
  /**
   * How long a metad that lives may take to answer at the start, two minutes unless told
   * otherwise.
   */
  readonly adoptTimeoutMs?: number | undefined;
}

/**
 * Time for a new metad to answer. One that ends is noticed at once: only one that stands still
 * reaches this, or one on a machine that is emulated and busy, where a minute was too short. With
 * `ADOPT_TIMEOUT_MS` it stays below the time that systemd gives noded to start.
 */
const START_TIMEOUT_MS = 120_000;
const STOP_LIMITS = { askMs: 10_000, killMs: 10_000 };
const POLL_MS = 100;
const WATCH_MS = 500;
/**
 * Time for a metad that lives to answer a new noded. What it holds cannot be had again, so it is
 * given as long as a new one.
 */
const ADOPT_TIMEOUT_MS = 120_000;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/**
 * A metad that answers nothing for three of these is hung. Loaded machines are slow, but not for
 * minutes.
 */
const STATUS_TIMEOUT_MS = 30_000;
const STATUS_INTERVAL_MS = 15_000;
const MAX_SILENT_CHECKS = 3;
/** Size of metad.log, and of the one before it. */
const MAX_LOG_BYTES = 16 * MIB;
const LOG_TAIL_BYTES = 4096;
/** A metad that lived this long failed for a new reason. */
const STABLE_MS = 30_000;

/**
 * Keeps exactly one metad running.
 *
 * INVARIANTS: at most one `#watch` loop runs; `#process` is what it watches; after `release`
 * nothing is started any more.
 */
export class MetadSupervisor {
  readonly #options: SupervisorOptions;
  readonly #logFile: string;
  readonly #adoptTimeoutMs: number;
  readonly #released = new AbortController();
  #process: ProcessIdentity | undefined;
  #watching: Promise<void> | undefined;
  restarts = 0;
  adopted = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#logFile = join(options.paths.logDir, 'metad.log');
    this.#adoptTimeoutMs = options.adoptTimeoutMs ?? ADOPT_TIMEOUT_MS;
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
    // Nothing waits for this: a hung metad would hold the end.
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
    if (this.#process) await endProcess(this.#process, STOP_LIMITS);
    rmSync(this.#options.paths.metadControlSocket, { force: true });
    rmSync(this.#options.paths.metadRecordFile, { force: true });
  }

  /**
   * The metad that an earlier noded left, once it answers: a busy machine may keep it from that for
   * long, and a second one beside it would be reached by some guests and not by others. Whatever
   * cannot be taken over is ended, so that the next one is alone.
   */
  async #findRunning(): Promise<ProcessIdentity | undefined> {
    const { channel, logger, clock } = this.#options;
    const left = findPredecessors(this.#places());
    const usable = left.filter(({ pid }) => isInNetworkNamespace(pid, this.#namespacePath()));
    const deadline = clock.monotonicMs() + this.#adoptTimeoutMs;
    let adopted: ProcessIdentity | undefined;
    while (usable.some(isAlive) && clock.monotonicMs() < deadline) {
      try {
        const { pid } = await askStatus(channel, deadline - clock.monotonicMs());
        // What it says of itself is checked: no foreign process is adopted.
        adopted = usable.find((candidate) => candidate.pid === pid);
        break;
      } catch (error) {
        if (!isAppError(error, 'METAD_UNAVAILABLE')) throw error;
        if (error instanceof ForeignMetad) break;
        await delay(POLL_MS);
      }
    }
    const isHung = clock.monotonicMs() >= deadline;
    for (const other of left) {
      if (other === adopted) continue;
      logger.warn('metad.ended-at-start', { metadPid: other.pid, isHung });
      await endProcess(other, isHung ? { ...STOP_LIMITS, askMs: 0 } : STOP_LIMITS);
    }
    if (adopted) {
      recordMetad(this.#places(), adopted);
      logger.info('metad.adopted', { metadPid: adopted.pid });
    }
    return adopted;
  }

  #places(): MetadPlaces {
    const { paths, user } = this.#options;
    return { recordFile: paths.metadRecordFile, namespace: this.#namespacePath(), user };
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
      // A metad that is asked to end takes its record along.
      args: existsSync(paths.metadRecordFile) ? [...args, '--successor'] : args,
    });
    rmSync(paths.metadControlSocket, { force: true });
    this.#boundLog();
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
      const started = child.pid === undefined ? undefined : readProcessIdentity(child.pid);
      // It is noted before it is waited for: if this daemon is killed meanwhile, the next one finds
      // it.
      if (started) recordMetad(this.#places(), started);
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
        const { pid } = await askStatus(channel, deadline - clock.monotonicMs());
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
    if (started) await endProcess(started, STOP_LIMITS);
    const said = this.#lastWords();
    throw new AppError(
      'METAD_UNAVAILABLE',
      `gnt-metad did not start: ${exitReason() ?? reason}${said && `; it printed: ${said}`}`,
      { hint: `See ${this.#logFile}` },
    );
  }

  #boundLog(): void {
    boundFile(this.#logFile, MAX_LOG_BYTES, `${this.#logFile}.1`);
  }

  /** The last line that metad logged, for an error message. */
  #lastWords(): string {
    return lastLineOf(readFileTail(this.#logFile, LOG_TAIL_BYTES));
  }

  /** A poll, since an adopted metad is no child of ours. */
  async #watch(): Promise<void> {
    const { signal } = this.#released;
    const { clock, logger } = this.#options;
    let backoffMs = FIRST_BACKOFF_MS;
    let startedAt = clock.monotonicMs();
    while (await pause(WATCH_MS, signal)) {
      this.#boundLog();
      if (this.#process && isAlive(this.#process)) continue;
      const livedMs = clock.monotonicMs() - startedAt;
      if (livedMs > STABLE_MS) backoffMs = FIRST_BACKOFF_MS;
      logger.error('metad.died', { livedMs, backoffMs, said: this.#lastWords() });
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
      signalProcess(asked, 'SIGKILL');
    }
  }
}

/** Waits; false when the signal ended the wait. */
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
