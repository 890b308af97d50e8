import { closeSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pause } from '#shared/abort/until.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { launchProgram } from '#shared/process/launch.ts';
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
  /** Called when a new metad without views answers. */
  readonly onRestarted: () => void;
  /** Time for a running metad to answer at the start (default two minutes). */
  readonly adoptTimeoutMs?: number | undefined;
}

/**
 * Time for a new metad to answer. The exit of metad is noticed at once, so only a hung metad or a
 * busy emulated host reaches this limit. One minute was too short there. With `ADOPT_TIMEOUT_MS` it
 * stays below systemd's start timeout of noded.
 */
const START_TIMEOUT_MS = 120_000;
const STOP_LIMITS = { askMs: 10_000, killMs: 10_000 };
const POLL_MS = 100;
const WATCH_MS = 500;
/**
 * Time for a running metad to answer a new noded. Its content would be lost with it, so the limit
 * is as high as for a new metad.
 */
const ADOPT_TIMEOUT_MS = 120_000;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/**
 * A metad that fails three checks of this length is hung. Loaded hosts are slow, but not for
 * minutes.
 */
const STATUS_TIMEOUT_MS = 30_000;
const STATUS_INTERVAL_MS = 15_000;
const MAX_SILENT_CHECKS = 3;
/** Size of metad.log, and of metad.log.1. */
const MAX_LOG_BYTES = 16 * MIB;
const LOG_TAIL_BYTES = 4096;
/** A metad that ran for this time failed for a new reason. */
const STABLE_MS = 30_000;

/**
 * Keeps exactly one metad running.
 *
 * INVARIANTS: at most one `#watch` loop runs; it watches `#process`; nothing is started after
 * `release`.
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

  /** @throws AppError METAD_UNAVAILABLE with the last line of its log */
  async start(): Promise<void> {
    const found = await this.#findRunning();
    this.adopted = found !== undefined;
    this.#process = found ?? (await this.#launch());
    this.#watching = this.#watch();
    // Not awaited: a hung metad would delay `release`.
    this.#watchAnswers().catch((error: unknown) =>
      this.#options.logger.error('metad.watch-failed', { reason: messageOf(error) }),
    );
  }

  /** Stops watching and leaves metad running. */
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
   * Finds and adopts the metad of an earlier noded. A busy host may delay its answer for long, and
   * a second metad would serve some guests while the first serves others. Every metad that cannot
   * be adopted is ended.
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
        // Only a predecessor's pid is accepted, so that no foreign process is adopted.
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
      // The record is removed when metad is ended on purpose. A left record means a successor.
      args: existsSync(paths.metadRecordFile) ? [...args, '--successor'] : args,
    });
    rmSync(paths.metadControlSocket, { force: true });
    this.#boundLog();
    const log = openLog(this.#logFile);
    let exit: string | undefined;
    try {
      // nsenter, unshare, sh and setpriv replace each other: the child's pid becomes metad's.
      const { child, exit: ended } = launchProgram([planned.command, ...planned.args], {
        outlives: true,
        stdio: ['ignore', 'ignore', log],
      });
      ended.then(
        ([code, signal]) => (exit = `it ended with ${signal ?? `status ${code}`}`),
        (error: unknown) => (exit = messageOf(error)),
      );
      const started = child.pid === undefined ? undefined : readProcessIdentity(child.pid);
      // Recorded before the wait: if this daemon is killed meanwhile, the next one finds metad.
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

  /** Returns the last line of metad's log, for an error message. */
  #lastWords(): string {
    return lastLineOf(readFileTail(this.#logFile, LOG_TAIL_BYTES));
  }

  /** Polls, because an adopted metad is no child of this process. */
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

  /** Kills a hung metad; `#watch` starts another. */
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
        // Only count silence of the same process.
        silentChecks = asked && isAlive(asked) && asked === this.#process ? silentChecks + 1 : 0;
      }
      if (silentChecks < MAX_SILENT_CHECKS || !asked || signal.aborted) continue;
      silentChecks = 0;
      this.#options.logger.error('metad.hung', { metadPid: asked.pid });
      signalProcess(asked, 'SIGKILL');
    }
  }
}
