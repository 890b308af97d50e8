import { until } from '#shared/abort/until.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { probeKvm } from './accelerator-probe.ts';
import { type ConsoleLog, ConsoleLogs } from '../host/console-log.ts';
import { openGuestFiles } from './guest-files.ts';
import { launchQemu } from './launch-qemu.ts';
import type { LaunchedProcess } from './launch-qemu.ts';
import {
  type AcceleratorChoice,
  hasUserNic,
  isPublicOnly,
  type Machine,
  type MachineSpec,
} from './machine.ts';
import { readProcFile, userOf } from '../host/process-facts.ts';
import {
  isAlive,
  readBootId,
  readParentIdentity,
  readProcessIdentity,
  signalProcess,
} from '../host/process-identity.ts';
import type { ProcessIdentity } from '../host/process-identity.ts';
import { QemuMachine } from './qemu-machine.ts';
import { isMachineUser, type MachineUsers, requireMachineUsers } from '../host/machine-users.ts';
import { findUser } from '../host/system-user.ts';
import type { UserNicFirewall } from '../net/channel/user-nic-firewall.ts';
import { RunDirectory, listRunDirectories } from './run-directory.ts';
import type { MachineRecord } from './run-directory.ts';

/** QEMU answers within a fraction of a second, except on a swapping host. */
const START_TIMEOUT_MS = 60_000;
const ADOPT_TIMEOUT_MS = 10_000;
const IDENTIFIED_INTERVAL_MS = 20;
const ENDED_INTERVAL_MS = 50;
/** Common user of all QEMU processes of earlier releases. */
const FORMER_USER = 'gnt-qemu';

export interface AdoptedMachine {
  readonly machine: Machine;
  readonly meta: Readonly<Record<string, string>>;
}

export interface StartOptions {
  readonly signal?: AbortSignal | undefined;
  /** Stored in the run directory (root only) and returned by adopt(). Never a secret. */
  readonly meta?: Readonly<Record<string, string>>;
  /** First note. @see Machine.writeNote */
  readonly note?: string;
  /** Original start of a guest that migrated to this node. */
  readonly startedAtMs?: number | undefined;
}

export interface Hypervisor {
  /**
   * Starts QEMU unprivileged and sandboxed, so that it survives this process. Resolves when QMP
   * answers. Descriptors of TAPs may be closed after that.
   * @throws AppError HOST_PREREQUISITE, INSTANCE_STATE when it already runs, QEMU_FAILED, or the
   * signal's reason
   */
  start(spec: MachineSpec, options?: StartOptions): Promise<Machine>;
  /**
   * Adopts QEMU processes that survived a restart of noded, and removes the run directories of
   * others. Call it once, before start().
   */
  adopt(): Promise<readonly AdoptedMachine[]>;
  /**
   * Kills a QEMU process that must not write, even if an earlier daemon started it. Resolves when
   * it has ended or does not exist.
   */
  cut(uuid: string): Promise<void>;
  /** Leaves all QEMU processes running, for the daemon that adopts them. */
  letGo(): void;
  /**
   * Runs a tiny guest in KVM, with a deadline. The result does not change while the host runs: keep
   * it.
   */
  probeAccelerator(): Promise<AcceleratorChoice>;
}

export interface HypervisorOptions {
  /** Parent of the run directories `<vmDir>/<uuid>/`. */
  readonly vmDir: string;
  readonly users: MachineUsers;
  readonly wall: UserNicFirewall;
  /** File with the end of this node's right to write shared disks; null without shared disks. */
  readonly leaseFile: string | null;
  readonly logger: Logger;
  readonly clock: Clock;
}

export function createHypervisor(options: HypervisorOptions): Hypervisor {
  return new QemuHypervisor(options);
}

/** INVARIANT: a UUID is in #busy from the first file of its run directory to the last. */
class QemuHypervisor implements Hypervisor {
  readonly #vmDir: string;
  readonly #users: MachineUsers;
  readonly #wall: UserNicFirewall;
  readonly #leaseFile: string | null;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #consoles = new ConsoleLogs();
  readonly #busy = new Set<string>();
  readonly #machines = new Set<QemuMachine>();

  constructor(options: HypervisorOptions) {
    this.#vmDir = options.vmDir;
    this.#users = options.users;
    this.#wall = options.wall;
    this.#leaseFile = options.leaseFile;
    this.#logger = options.logger;
    this.#clock = options.clock;
  }

  async start(spec: MachineSpec, options: StartOptions = {}): Promise<Machine> {
    const { signal } = options;
    signal?.throwIfAborted();
    const runDirectory = new RunDirectory(this.#vmDir, spec.uuid);
    if (this.#busy.has(spec.uuid)) throw runsAlready(spec);
    this.#busy.add(spec.uuid);
    try {
      const machine = await this.#start(spec, runDirectory, options);
      this.#releaseAfter(machine);
      return machine;
    } catch (error) {
      this.#busy.delete(spec.uuid);
      throw error;
    }
  }

  async adopt(): Promise<readonly AdoptedMachine[]> {
    const adopted: AdoptedMachine[] = [];
    for (const uuid of await listRunDirectories(this.#vmDir)) {
      if (this.#busy.has(uuid)) continue;
      const runDirectory = new RunDirectory(this.#vmDir, uuid);
      const survivor = await this.#findSurvivor(runDirectory, uuid);
      if (survivor === undefined) {
        this.#logger.info('machine.leftovers-removed', { uuid });
        await runDirectory.remove();
        continue;
      }
      const { record, identity } = survivor;
      adopted.push({
        machine: await this.#adopt(record, runDirectory, identity),
        meta: record.meta,
      });
    }
    await this.#wall.tidy();
    return adopted;
  }

  async cut(uuid: string): Promise<void> {
    const runDirectory = new RunDirectory(this.#vmDir, uuid);
    const identity = (await this.#findSurvivor(runDirectory, uuid))?.identity;
    if (identity === undefined) return;
    signalProcess(identity, 'SIGKILL');
    await until(() => !isAlive(identity), { everyMs: ENDED_INTERVAL_MS });
  }

  letGo(): void {
    for (const machine of this.#machines) machine.letGo();
    this.#machines.clear();
  }

  async probeAccelerator(): Promise<AcceleratorChoice> {
    requireMachineUsers(this.#users);
    return probeKvm(this.#users);
  }

  async #start(
    spec: MachineSpec,
    runDirectory: RunDirectory,
    { signal, meta = {}, note, startedAtMs = this.#clock.now() }: StartOptions,
  ): Promise<QemuMachine> {
    requireMachineUsers(this.#users);
    if (await this.#findAlive(runDirectory, await runDirectory.readRecord())) {
      throw runsAlready(spec);
    }
    await runDirectory.remove();
    await using files = await openGuestFiles(spec);
    const channelNic = spec.nics.find((nic) => nic.kind === 'tap' && nic.channel);
    const record: MachineRecord = {
      version: 1,
      uuid: spec.uuid,
      name: spec.name,
      accelerator: spec.accelerator,
      tap: channelNic?.kind === 'tap' ? channelNic.device : null,
      userNic: hasUserNic(spec),
      ...(isPublicOnly(spec) && { isPublicOnly: true as const }),
      ...(spec.isFenced === true && this.#leaseFile !== null && { isFenced: true }),
      startedAtMs,
      bootId: readBootId(),
      meta,
    };
    let launched: LaunchedProcess | undefined;
    const consoleLog = this.#consoles.create();
    try {
      await runDirectory.create(record);
      if (note !== undefined) await runDirectory.writeNote(note);
      if (record.userNic) await this.#wall.raiseFor(spec.uuid);
      signal?.throwIfAborted();
      const leaseFile = spec.isFenced === true ? this.#leaseFile : null;
      launched = launchQemu(spec, runDirectory, files, this.#users, consoleLog, leaseFile);
      if (leaseFile !== null) await untilIdentified(runDirectory, launched, signal);
      return await this.#meet(record, runDirectory, launched, consoleLog, signal);
    } catch (error) {
      consoleLog.close();
      if (launched) await killChild(launched);
      await this.#wall.lowerFor(spec.uuid);
      const failure = await this.#explain(spec, runDirectory, error, signal);
      await runDirectory.remove();
      throw failure;
    }
  }

  async #meet(
    record: MachineRecord,
    runDirectory: RunDirectory,
    launched: LaunchedProcess,
    consoleLog: ConsoleLog,
    signal: AbortSignal | undefined,
  ): Promise<QemuMachine> {
    // A fenced QEMU process is a child of the launched one, and has written its identity.
    const isChild = record.isFenced ? await runDirectory.readIdentity() : undefined;
    const identity = isChild ?? readProcessIdentity(launched.pid);
    if (!identity) throw new Error('QEMU ended right after its start');
    const logger = this.#logger.child({ instance: record.name, machine: record.uuid });
    const machine = new QemuMachine({
      record,
      runDirectory,
      identity,
      childEnd: launched.end,
      consoleLog,
      clock: this.#clock,
      logger,
    });
    // QEMU's listening sockets end with it, so an early exit closes the connection.
    await machine.connect(START_TIMEOUT_MS, signal);
    await this.#openWall(record, identity);
    machine.watch();
    logger.info('machine.started', { pid: identity.pid, accelerator: record.accelerator });
    return machine;
  }

  async #explain(
    spec: MachineSpec,
    runDirectory: RunDirectory,
    error: unknown,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    if (signal?.aborted) return signal.reason;
    if (error instanceof AppError && error.code !== 'QMP') return error;
    const stderr = runDirectory.readStderr();
    return new AppError(
      'QEMU_FAILED',
      `cannot start QEMU for ${spec.name}: ${causeIn(stderr) ?? messageOf(error)}`,
      { details: { stderr }, cause: error },
    );
  }

  async #adopt(
    record: MachineRecord,
    runDirectory: RunDirectory,
    identity: ProcessIdentity,
  ): Promise<Machine> {
    const logger = this.#logger.child({ instance: record.name, machine: record.uuid });
    const machine = new QemuMachine({
      record,
      runDirectory,
      identity,
      childEnd: undefined,
      fence: record.isFenced ? readParentIdentity(identity.pid) : undefined,
      consoleLog: this.#consoles.ofProcess(identity.pid),
      clock: this.#clock,
      logger,
    });
    this.#busy.add(record.uuid);
    await this.#openWall(record, identity);
    if (record.userNic) await this.#raiseAgain(record.uuid);
    try {
      await machine.connect(ADOPT_TIMEOUT_MS);
    } catch (error) {
      // The process runs, so it must be watched and killed. connect() is retried meanwhile.
      logger.warn('machine.adopted-without-qmp', { message: messageOf(error) });
    }
    machine.watch();
    this.#releaseAfter(machine);
    logger.info('machine.adopted', { pid: identity.pid });
    return machine;
  }

  async #findAlive(
    runDirectory: RunDirectory,
    record: MachineRecord | undefined,
  ): Promise<ProcessIdentity | undefined> {
    if (record?.bootId !== readBootId()) return undefined;
    const identity = await runDirectory.readIdentity();
    return identity && isAlive(identity) ? identity : undefined;
  }

  /**
   * Finds a running QEMU process. If its record cannot be read, a record without `meta` is made, so
   * that the guest can continue.
   */
  async #findSurvivor(
    runDirectory: RunDirectory,
    uuid: string,
  ): Promise<{ record: MachineRecord; identity: ProcessIdentity } | undefined> {
    const record = await runDirectory.readRecord();
    if (record) {
      const identity = await this.#findAlive(runDirectory, record);
      return identity && { record, identity };
    }
    const identity = await runDirectory.readIdentity();
    if (!identity || !isAlive(identity)) return undefined;
    const uid = userOf(identity.pid);
    if (uid === undefined) return undefined;
    const isMachine = isMachineUser(this.#users, uid) || (await findUser(FORMER_USER))?.uid === uid;
    if (!isMachine) return undefined;
    this.#logger.error('machine.record-unreadable', { uuid, pid: identity.pid });
    const made = recordWithoutFile(uuid, (readProcFile(identity.pid, 'cmdline') ?? '').split('\0'));
    return { record: made, identity };
  }

  /** Lets a guest reach private networks, unless one of its NICs may not. */
  async #openWall(record: MachineRecord, { pid }: ProcessIdentity): Promise<void> {
    if (!record.userNic || record.isPublicOnly) return;
    const uid = userOf(pid);
    if (uid !== undefined && isMachineUser(this.#users, uid))
      await this.#wall.openFor(record.uuid, uid);
  }

  /** Adopts a guest even if its firewall rules fail. They are retried. */
  async #raiseAgain(uuid: string): Promise<void> {
    try {
      await this.#wall.raiseFor(uuid);
    } catch (error) {
      this.#logger.error('machine.without-wall', { uuid, err: error });
    }
  }

  #releaseAfter(machine: QemuMachine): void {
    this.#machines.add(machine);
    void machine.exited.then(async () => {
      this.#machines.delete(machine);
      this.#busy.delete(machine.uuid);
      await this.#wall.lowerFor(machine.uuid);
    });
  }
}

/**
 * Makes a record from QEMU's command line, which does not tell whether NICs may reach private
 * networks. So they may not.
 */
export function recordWithoutFile(uuid: string, commandLine: readonly string[]): MachineRecord {
  const accelerator = commandLine[commandLine.indexOf('-accel') + 1]?.startsWith('kvm');
  return {
    version: 1,
    uuid,
    name: uuid,
    tap: null,
    startedAtMs: 0,
    meta: {},
    userNic: commandLine.some((word) => word.startsWith('user,id=net')),
    isPublicOnly: true,
    accelerator: accelerator ? 'kvm' : 'tcg',
    bootId: readBootId(),
  };
}

/**
 * Returns QEMU's first error line; hints and consequences follow it. Without one, returns the
 * launcher's last line.
 */
function causeIn(stderr: string): string | undefined {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const complaint = lines.find((line) => /^qemu-system-\S+: (?!warning:)/.test(line));
  return complaint?.replace(/^qemu-system-\S+: /, '') ?? lines.at(-1);
}

/** Waits until the launching shell has written its identity, its first action. */
async function untilIdentified(
  runDirectory: RunDirectory,
  launched: LaunchedProcess,
  signal: AbortSignal | undefined,
): Promise<void> {
  let hasEnded = false;
  void launched.end.then(() => (hasEnded = true));
  const isIdentified = async (): Promise<boolean> =>
    (await runDirectory.readIdentity()) !== undefined;
  const limits = { everyMs: IDENTIFIED_INTERVAL_MS, limitMs: START_TIMEOUT_MS, signal };
  await until(async () => (await isIdentified()) || hasEnded, limits);
  if (!(await isIdentified())) throw new Error('QEMU was not started');
}

async function killChild(launched: LaunchedProcess): Promise<void> {
  const identity = readProcessIdentity(launched.pid);
  // Not reaped yet, because `end` is pending: the pid is still valid.
  if (identity) process.kill(launched.pid, 'SIGKILL');
  await launched.end;
}

function runsAlready(spec: MachineSpec): AppError {
  return new AppError('INSTANCE_STATE', `a QEMU process of ${spec.name} is already running`, {
    hint: `Shut it down first: gnt-instance shutdown ${spec.name}`,
  });
}
