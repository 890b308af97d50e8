import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { every } from '#shared/clock/every.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { boundFile } from '../host/bounded-log.ts';
import type { ConsoleLog } from '../host/console-log.ts';
import { judgeExit } from './judge-exit.ts';
import { openDisk } from './guest-files.ts';
import {
  deviceId,
  diskNode,
  forgetPart,
  partOf,
  listPlugged,
  plugDisk,
  plugNic,
} from './hot-plug.ts';
import { haltReasonOf, readHaltReason } from './guest-halt.ts';
import type { GuestHalt, Machine, MachineExit, PluggedPart } from './machine.ts';
import { isAlive, signalProcess } from '../host/process-identity.ts';
import type { ProcessIdentity } from '../host/process-identity.ts';
import { createMachineMigration } from './machine-migration.ts';
import { type PowerButton, powerButtonQuestions, readPowerButton } from './power-button.ts';
import { QmpClient } from './qmp-client.ts';
import type { QmpEvent } from './qmp-client.ts';
import type { MachineRecord, RunDirectory } from './run-directory.ts';

/** QEMU flushes its disks on SIGTERM. If it has not ended by then, it hangs. */
const TERM_GRACE_MS = 1_000;
/** Interval of polls for the end of an adopted process. */
const WATCH_INTERVAL_MS = 1_000;
/** QEMU closed its socket and is about to end. */
const ENDING_INTERVAL_MS = 20;
/** Time to read the last events from the socket of an ended process. */
const LAST_EVENTS_MS = 500;
const QMP_RECONNECT_TIMEOUT_MS = 5_000;
/**
 * `stop` answers after all writes of the guest have reached its disks, and `cont` waits for `stop`.
 */
const DRAIN_TIMEOUT_MS = 120_000;
/** A guest that supports hot-plug needs a second, more under load. */
const UNPLUG_TIMEOUT_MS = 15_000;
const MAX_LOG_BYTES = 4 * MIB;
const CONSOLE_TAIL_BYTES = 16 * 1024;

export interface ProcessEnd {
  readonly exitStatus: number | null;
  readonly signal: string | null;
}

export interface QemuMachineParts {
  readonly record: MachineRecord;
  readonly runDirectory: RunDirectory;
  readonly identity: ProcessIdentity;
  /** End of our own child; undefined for an adopted process. */
  readonly childEnd: Promise<ProcessEnd> | undefined;
  /** Parent of an adopted, fenced process. It has QEMU's descriptors too. */
  readonly fence?: ProcessIdentity | undefined;
  /** Closed when the process has ended. */
  readonly consoleLog: ConsoleLog | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * INVARIANTS: `exited` resolves exactly once, after the process ended and its run directory was
 * removed, or never after letGo(). No output or failure of QEMU causes an unhandled rejection.
 */
export class QemuMachine implements Machine {
  readonly exited: Promise<MachineExit>;
  readonly migration = createMachineMigration(() => this.#connect(QMP_RECONNECT_TIMEOUT_MS));
  readonly #parts: QemuMachineParts;
  readonly #exit = Promise.withResolvers<MachineExit>();
  #qmp: QmpClient | undefined;
  #connecting: Promise<QmpClient> | undefined;
  #shutdownReason: string | undefined;
  #halt: GuestHalt | null = null;
  #guestResets = 0;
  /** Callbacks by device that wait for its removal. */
  readonly #deletions = new Map<string, () => void>();
  onRelease: ((uuid: string) => void) | undefined;
  #isKilled = false;
  #hasEnded = false;
  readonly #letGo = new AbortController();

  constructor(parts: QemuMachineParts) {
    this.#parts = parts;
    this.exited = this.#exit.promise;
  }

  get uuid(): string {
    return this.#parts.record.uuid;
  }
  get pid(): number {
    return this.#parts.identity.pid;
  }
  get startedAtMs(): number {
    return this.#parts.record.startedAtMs;
  }
  get accelerator(): Machine['accelerator'] {
    return this.#parts.record.accelerator;
  }
  get tap(): string | null {
    return this.#parts.record.tap;
  }
  get consoleSocket(): string {
    return this.#parts.runDirectory.consoleSocket;
  }

  get guestResets(): number {
    return this.#guestResets;
  }

  get halt(): GuestHalt | null {
    return this.#halt;
  }

  isRunning(): boolean {
    return !this.#hasEnded && isAlive(this.#parts.identity);
  }

  writeNote(note: string): Promise<void> {
    return this.#parts.runDirectory.writeNote(note);
  }

  writeMeta(meta: Readonly<Record<string, string>>): Promise<void> {
    const { record, runDirectory } = this.#parts;
    return runDirectory.create({ ...record, meta });
  }

  pathOf(name: string): string {
    return join(this.#parts.runDirectory.path, name);
  }

  readNote(): Promise<string | undefined> {
    return this.#parts.runDirectory.readNote();
  }

  /** @throws AppError QMP, or the signal's reason */
  async connect(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    await this.#connect(timeoutMs, signal);
  }

  /** Watches the process until its end, which `exited` reports. Call it once. */
  watch(): void {
    const ended = this.#parts.childEnd ?? this.#waitForStranger();
    const tending = every(WATCH_INTERVAL_MS, () => this.#tend());
    this.#letGo.signal.addEventListener('abort', () => tending[Symbol.dispose]());
    void ended.then(async (end) => {
      tending[Symbol.dispose]();
      if (this.#letGo.signal.aborted) return;
      const exit = await this.#conclude(end);
      if (!this.#letGo.signal.aborted) this.#exit.resolve(exit);
    });
  }

  /**
   * Leaves the process running for the daemon that adopts it, and closes QMP, because QEMU has one
   * client at a time. Only signals of an earlier `kill` are still sent. `exited` stays pending.
   */
  letGo(): void {
    this.#letGo.abort(new AppError('QMP', 'this QEMU process was already released'));
    this.#qmp?.close();
    this.#parts.consoleLog?.close();
  }

  async powerButton(): Promise<PowerButton | undefined> {
    const qmp = await this.#connect(QMP_RECONNECT_TIMEOUT_MS);
    const answers = powerButtonQuestions.map((question) =>
      qmp.execute('human-monitor-command', { 'command-line': question }),
    );
    return readPowerButton(await Promise.all(answers));
  }

  async powerdown(): Promise<void> {
    await (await this.#connect(QMP_RECONNECT_TIMEOUT_MS)).execute('system_powerdown');
  }

  async pause(): Promise<void> {
    await (await this.#connect(QMP_RECONNECT_TIMEOUT_MS)).execute('stop', {}, DRAIN_TIMEOUT_MS);
  }

  async resume(): Promise<void> {
    await (await this.#connect(QMP_RECONNECT_TIMEOUT_MS)).execute('cont', {}, DRAIN_TIMEOUT_MS);
  }

  async growDisk(disk: string | number, sizeBytes: number): Promise<void> {
    const qmp = await this.#connect(QMP_RECONNECT_TIMEOUT_MS);
    const node = typeof disk === 'string' ? diskNode(disk) : `disk${disk}`;
    await qmp.execute('block_resize', { 'node-name': node, size: sizeBytes });
  }

  async plugged(): Promise<ReadonlySet<string>> {
    return listPlugged(await this.#connect(QMP_RECONNECT_TIMEOUT_MS));
  }

  async plug(part: PluggedPart): Promise<void> {
    const qmp = await this.#connect(QMP_RECONNECT_TIMEOUT_MS);
    if ('disk' in part) {
      const { handle, ...how } = await openDisk(part.disk);
      await using opened = handle;
      return await plugDisk(qmp, part, { fd: opened.fd, ...how, serial: part.disk.serial });
    }
    const { nic } = part;
    if (nic.kind === 'user' && !this.#parts.record.userNic)
      throw new AppError('QMP', 'the QEMU process was started without the network of the host');
    return plugNic(qmp, part, { tap: nic.kind === 'tap' ? nic.fd : null, mac: nic.mac });
  }

  async unplug(uuid: string): Promise<boolean> {
    const qmp = await this.#connect(QMP_RECONNECT_TIMEOUT_MS);
    const isThere = async (): Promise<boolean> => (await listPlugged(qmp)).has(uuid);
    const deleted = Promise.withResolvers<void>();
    this.#deletions.set(deviceId(uuid), deleted.resolve);
    try {
      if (await isThere()) {
        // An earlier request may be pending. The guest then gets the full time again.
        await qmp.execute('device_del', { id: deviceId(uuid) }).catch((error: unknown) => {
          if (!isAppError(error, 'QMP')) throw error;
        });
        const late = sleep(UNPLUG_TIMEOUT_MS, undefined, { ref: false });
        await Promise.race([deleted.promise, late, this.exited]);
      }
      if (await isThere()) return false;
      await forgetPart(qmp, uuid);
      return true;
    } finally {
      this.#deletions.delete(deviceId(uuid));
    }
  }

  async reset(): Promise<void> {
    await (await this.#connect(QMP_RECONNECT_TIMEOUT_MS)).execute('system_reset');
  }

  async kill(): Promise<MachineExit> {
    if (!this.#isKilled && !this.#letGo.signal.aborted) {
      this.#isKilled = true;
      signalProcess(this.#parts.identity, 'SIGTERM');
      const late = setTimeout(() => signalProcess(this.#parts.identity, 'SIGKILL'), TERM_GRACE_MS);
      void this.exited.then(() => clearTimeout(late));
    }
    return this.exited;
  }

  async #connect(timeoutMs: number, signal?: AbortSignal): Promise<QmpClient> {
    if (this.#qmp?.isOpen) return this.#qmp;
    this.#letGo.signal.throwIfAborted();
    this.#connecting ??= QmpClient.connect({
      socketPath: this.#parts.runDirectory.qmpSocket,
      onEvent: (event) => this.#note(event),
      timeoutMs,
      signal,
    })
      .then(async (client) => {
        client.unref();
        this.#qmp = client;
        if (this.#letGo.signal.aborted) client.close();
        // Catch up on events missed without a connection.
        const status = await client.execute('query-status');
        this.#noteHalt(readHaltReason(status, await client.execute('query-block')));
        return client;
      })
      .finally(() => {
        this.#connecting = undefined;
      });
    return this.#connecting;
  }

  #note(event: QmpEvent): void {
    const halted = haltReasonOf(event);
    if (halted !== undefined) this.#noteHalt(halted);
    if (event.name === 'RESUME') this.#noteHalt(null);
    if (event.name === 'DEVICE_DELETED') this.#noteDeleted(event.data.device);
    if (event.name === 'RESET' && event.data.guest === true) this.#guestResets += 1;
    if (event.name !== 'SHUTDOWN') return;
    // The first event has the cause. A later one follows from our own `quit` or signal.
    this.#shutdownReason ??= String(event.data.reason).slice(0, 64);
  }

  #noteDeleted(device: unknown): void {
    const waiting = this.#deletions.get(String(device));
    if (waiting !== undefined) return waiting();
    const part = typeof device === 'string' ? partOf(device) : undefined;
    if (part !== undefined) void this.#release(part);
  }

  /** Completes a removal that the guest did after `unplug` had returned. */
  async #release(part: string): Promise<void> {
    try {
      await forgetPart(await this.#connect(QMP_RECONNECT_TIMEOUT_MS), part);
      this.#parts.logger.info('machine.part-released', { part });
      this.onRelease?.(part);
    } catch (error) {
      this.#parts.logger.warn('machine.part-not-forgotten', { part, message: messageOf(error) });
    }
  }

  #noteHalt(reason: GuestHalt['reason'] | null): void {
    const { logger, clock } = this.#parts;
    if (reason === (this.#halt?.reason ?? null)) return;
    this.#halt = reason && { reason, sinceMs: clock.now() };
    if (reason === null) logger.info('machine.goes-on');
    else logger.error('machine.halted', { reason });
  }

  async #waitForStranger(): Promise<ProcessEnd> {
    const { identity, fence } = this.#parts;
    const lives = (): boolean => isAlive(identity) || (fence !== undefined && isAlive(fence));
    while (!this.#letGo.signal.aborted && lives()) {
      const isEnding = this.#qmp !== undefined && !this.#qmp.isOpen;
      const wait = sleep(isEnding ? ENDING_INTERVAL_MS : WATCH_INTERVAL_MS, undefined, {
        ref: false,
      });
      await (isEnding || !this.#qmp ? wait : Promise.race([wait, this.#qmp.closed]));
    }
    return { exitStatus: null, signal: null };
  }

  /**
   * Bounds the logs and reconnects QMP of a running process, so that the cause of its end will be
   * known.
   */
  async #tend(): Promise<void> {
    const { runDirectory, consoleLog, logger } = this.#parts;
    try {
      boundFile(runDirectory.stderrLog, MAX_LOG_BYTES);
      consoleLog?.bound();
      if (this.isRunning()) await this.#connect(QMP_RECONNECT_TIMEOUT_MS);
    } catch (error) {
      if (this.isRunning()) logger.debug('machine.qmp-lost', { message: messageOf(error) });
    }
  }

  async #conclude(end: ProcessEnd): Promise<MachineExit> {
    const { runDirectory, consoleLog, logger, childEnd } = this.#parts;
    if (this.#qmp) {
      await Promise.race([this.#qmp.closed, sleep(LAST_EVENTS_MS, undefined, { ref: false })]);
      this.#qmp.close();
    }
    this.#hasEnded = true;
    const reason = judgeExit({
      end: childEnd ? end : undefined,
      shutdownReason: this.#shutdownReason,
      isKilled: this.#isKilled,
    });
    const exit = {
      ...end,
      reason,
      stderrTail: this.#readStderr(),
      consoleTail: consoleLog?.readTail(CONSOLE_TAIL_BYTES) ?? '',
    };
    consoleLog?.close();
    await runDirectory.remove().catch((error: unknown) => {
      logger.warn('machine.run-directory-left', { path: runDirectory.path, err: error });
    });
    logger.info('machine.ended', { reason, exitStatus: end.exitStatus, signal: end.signal });
    return exit;
  }

  #readStderr(): string {
    try {
      return this.#parts.runDirectory.readStderr();
    } catch (error) {
      return `(not readable: ${messageOf(error)})`;
    }
  }
}
