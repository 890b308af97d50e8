import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import { describeLostSecrets } from '#shared/contract/supply-secrets.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { InstanceDisks } from '../storage/instance-disks.ts';
import type { Accelerator } from '../vmm/machine.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { Lifecycles } from './run-lists/lifecycles-contract.ts';
import { rebootGuest } from './run-lists/reboot-guest.ts';
import { undecommissionedReason } from './run-lists/script-refusals.ts';
import type { MetadLink } from '../net/metad-link/metad-link.ts';
import type { InstanceCards } from '../net/tenant/instance-cards.ts';
import type { GuestReports } from './reports/guest-reports.ts';
import type { InstanceRepository, NewInstance } from '../records/instance-repository.ts';
import { noSecrets, type JobSecrets } from './parameters/job-secrets.ts';
import type { KeptMachine, MachineKeeper } from './machines/machine-keeper.ts';
import { installationParameters } from './parameters/installation-parameters.ts';
import { MachinePlanner, type MachineFiles } from './machines/machine-planner.ts';
import { refuseUnbootable, refuseUnbootableRun } from './machines/plan-boot.ts';
import { powerOff } from './machines/power-off.ts';
import { checkBootFiles, refuseEmptyMedium } from './view/readable-by-all.ts';
import type { Views } from './view/views.ts';
import { refuseOversized } from './view/refuse-oversized.ts';

export interface InstanceRunnerDependencies {
  readonly instances: InstanceRepository;
  readonly keeper: MachineKeeper;
  readonly views: Views;
  readonly metad: MetadLink;
  readonly disks: InstanceDisks;
  readonly cards: Pick<InstanceCards, 'check'>;
  readonly guestReports: Pick<GuestReports, 'follow' | 'followAdopted' | 'forget'>;
  readonly lifecycles: Lifecycles;
  readonly chooseAccelerator: (
    wanted: 'auto' | 'kvm' | 'tcg',
    context: JobContext | undefined,
  ) => Promise<Accelerator>;
  readonly clock: Clock;
}

/** What is known of a machine that comes from another node. */
export interface ExpectedMachine {
  readonly accelerator: Accelerator;
  readonly startedAtMs: number;
  readonly files: MachineFiles;
  readonly secrets: JobSecrets;
  readonly signal: AbortSignal;
}

/** `interlude`: off for the time of the job, as in a reboot; it is started again at its end. */
type StopKind = 'reboot' | 'interlude' | 'stop' | 'terminate';

/** Starts and stops instances in normal runs. */
export interface InstanceRunner {
  /** A machine of its own, not an appliance. */
  running(uuid: string): KeptMachine | undefined;
  isRunning(uuid: string): boolean;
  /**
   * Whether an instance that does not run has its disks for itself.
   * @throws AppError DISK_IN_USE: a machine that this daemon knows nothing of has them
   */
  checkDisksUnused(instance: NewInstance | InstanceRecord): Promise<void>;
  /** Refuses what can be refused about a start beforehand. */
  checkRunnable(instance: NewInstance | InstanceRecord): Promise<void>;
  /** The same of an installation and the start that follows it. */
  checkInstallable(instance: NewInstance | InstanceRecord): Promise<void>;
  start(instance: InstanceRecord, secrets: JobSecrets, context: JobContext): Promise<void>;
  /**
   * Asks the guest to power off; after the timeout, and what its decommission list may take, the
   * power is cut.
   */
  stop(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind?: StopKind,
  ): Promise<void>;
  /**
   * Off and on again; the guest keeps its metadata, secrets included. `soft`: a guest with an agent
   * does it itself, in the same machine.
   * @returns why its decommission list failed, or null
   */
  reboot(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind?: 'soft' | 'full',
  ): Promise<string | null>;
  reset(instance: InstanceRecord): Promise<void>;
  /** Puts a disk or a card into the port that it has on record. @throws AppError QMP */
  plug(instance: InstanceRecord, part: string): Promise<void>;
  /**
   * Takes it out. @returns false where the guest does not let go of it now. @throws AppError QMP
   */
  unplug(uuid: string, part: string): Promise<boolean>;
  /**
   * Makes all of a machine whose guest runs elsewhere, and does not let it run.
   * @throws AppError NOT_SUPPORTED where its QEMU was started otherwise
   */
  expect(instance: InstanceRecord, expected: ExpectedMachine): Promise<KeptMachine>;
  /**
   * The guest that was expected is here, and goes on. May be repeated where it failed.
   * @returns false where its machine has ended
   */
  welcome(instance: InstanceRecord): Promise<boolean>;
  /** Shows the guest the record as it is now; secrets that the running metad has, stay there. */
  republish(instance: InstanceRecord, secrets?: JobSecrets): Promise<void>;
}

export function createInstanceRunner(dependencies: InstanceRunnerDependencies): InstanceRunner {
  return new KeeperRunner(dependencies);
}

class KeeperRunner implements InstanceRunner {
  readonly #dependencies: InstanceRunnerDependencies;
  readonly #planner: MachinePlanner;
  /** Machines whose guests came from another node and go on. */
  readonly #resumed = new WeakSet<KeptMachine['machine']>();

  constructor(dependencies: InstanceRunnerDependencies) {
    this.#dependencies = dependencies;
    this.#planner = new MachinePlanner(dependencies);
  }

  running(uuid: string): KeptMachine | undefined {
    const kept = this.#dependencies.keeper.get(uuid);
    return kept?.kind === 'run' ? kept : undefined;
  }

  isRunning(uuid: string): boolean {
    // One that has ended and is only being cleaned up does not run; a start waits for its remains.
    return this.#dependencies.keeper.get(uuid)?.machine.isRunning() ?? false;
  }

  async checkDisksUnused(instance: NewInstance | InstanceRecord): Promise<void> {
    if (!this.isRunning(instance.uuid)) await this.#dependencies.disks.checkUnused(instance);
  }

  async checkRunnable(instance: NewInstance | InstanceRecord): Promise<void> {
    await this.checkDisksUnused(instance);
    // The vcpus of a stored record stay valid on a node with fewer processors.
    refuseOversized({ ...instance.beparams, vcpus: 0 });
    for (const nic of instance.nics) await this.#dependencies.cards.check(nic);
    refuseUnbootableRun(instance);
    await this.#checkParameters(instance.hvparams);
  }

  async checkInstallable(instance: NewInstance | InstanceRecord): Promise<void> {
    await this.checkRunnable(instance);
    refuseUnbootable(instance);
    await this.#checkParameters(installationParameters(instance));
    await refuseEmptyMedium(instance.installParameters);
  }

  async #checkParameters(parameters: HvParameters): Promise<void> {
    if (parameters.accel === 'kvm') await this.#dependencies.chooseAccelerator('kvm', undefined);
    await checkBootFiles(parameters);
  }

  async start(instance: InstanceRecord, secrets: JobSecrets, context: JobContext): Promise<void> {
    await this.#start(instance, secrets, context, false);
  }

  async #start(
    given: InstanceRecord,
    secrets: JobSecrets,
    context: JobContext,
    goesOn: boolean,
  ): Promise<void> {
    const { keeper, views, disks, lifecycles, chooseAccelerator } = this.#dependencies;
    const instance = await this.#forgetFormerParts(given);
    const { uuid } = instance;
    await using leftovers = new AsyncDisposableStack();
    // QEMU has it open, or was not started.
    leftovers.defer(() => disks.removeSeed(instance));
    const accelerator = await chooseAccelerator(instance.hvparams.accel ?? 'auto', context);
    if (instance.communication) await lifecycles.begin(instance, goesOn);
    else lifecycles.forget(uuid);
    await keeper.start({
      instance,
      kind: 'run',
      signal: context.signal,
      withInstanceNics: true,
      makeView: instance.communication
        ? (device, revision) => views.forStart(uuid, device, revision, secrets)
        : null,
      makeSpec: async (nics) =>
        this.#planner.makeSpec(
          instance,
          accelerator,
          nics,
          await this.#planner.makeFiles(instance),
        ),
    });
    if (instance.communication) {
      keeper.forgetSecrets(uuid, (device, revision) => views.asGiven(uuid, device, revision));
    }
    const kept = keeper.get(uuid);
    if (kept !== undefined) this.#dependencies.guestReports.follow(kept);
    if (kept !== undefined && instance.communication) lifecycles.follow(kept);
    await this.#dependencies.instances.update(uuid, (current) => ({
      ...current,
      adminState: 'up',
      stoppedByJob: null,
    }));
    context.report.log(`instance ${instance.name} started (${accelerator})`);
    const lost = kept?.lostSecrets ?? [];
    if (lost.length > 0) context.report.log(describeLostSecrets(instance.name, lost), 'warn');
  }

  async stop(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind: StopKind = 'stop',
  ): Promise<void> {
    const { keeper, instances, lifecycles } = this.#dependencies;
    const { uuid } = instance;
    // It would be called stopped while its guest runs on.
    await this.checkDisksUnused(instance);
    // It is noted before the stop: whoever finds it stopped knows whether it is to stay so.
    const stoppedByJob = kind === 'reboot' || kind === 'interlude' ? context.jobId : null;
    await instances.update(uuid, (current) => ({ ...current, adminState: 'down', stoppedByJob }));
    const kept = keeper.get(instance.uuid);
    if (kept === undefined) return;
    if (timeoutS === 0) return powerOff(kept, 0, this.#dependencies, context);
    // One that is started again afterwards goes off like any other.
    const scriptsS = await (kind === 'reboot'
      ? lifecycles.announce(uuid, 'stop', kind)
      : lifecycles.announce(uuid, kind === 'terminate' ? kind : 'stop'));
    try {
      const isObeying = (): boolean => lifecycles.isListening(uuid);
      const { signal, report } = context;
      await powerOff(kept, timeoutS + scriptsS, this.#dependencies, { signal, report, isObeying });
    } finally {
      await lifecycles.withdraw(uuid);
    }
  }

  async reboot(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind: 'soft' | 'full' = 'full',
  ): Promise<string | null> {
    const { keeper, lifecycles, clock } = this.#dependencies;
    let failure: string | null = null;
    await keeper.restart(instance.uuid, async () => {
      // What was changed since its start needs another QEMU.
      const mayStay = kind === 'soft' && timeoutS > 0 && instance.partsOfRun === null;
      const kept = mayStay ? this.running(instance.uuid) : undefined;
      if (kept !== undefined && lifecycles.isListening(instance.uuid)) {
        try {
          const rebooted = await rebootGuest(kept, timeoutS, { lifecycles, clock }, context);
          if (rebooted !== null) {
            failure = rebooted.failure;
            return;
          }
        } finally {
          // A cancelled job leaves nothing that a guest would obey later.
          await lifecycles.withdraw(instance.uuid);
        }
      }
      try {
        await this.stop(instance, timeoutS, context, 'reboot');
        // The start begins the next run.
        failure = undecommissionedReason(instance, lifecycles);
        await this.#start(instance, noSecrets, context, true);
      } catch (error) {
        // A daemon that ends leaves it to the next one.
        if (!isAppError(error, 'JOB_INTERRUPTED')) await this.#leaveDown(instance.uuid);
        throw error;
      }
    });
    return failure;
  }

  async #leaveDown(uuid: string): Promise<void> {
    await this.#dependencies.instances.update(uuid, (current) => ({
      ...current,
      stoppedByJob: null,
    }));
  }

  async reset(instance: InstanceRecord): Promise<void> {
    const kept = this.running(instance.uuid);
    if (kept === undefined) {
      throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
        hint: `gnt-instance startup ${instance.name}`,
      });
    }
    const { guestReports, metad } = this.#dependencies;
    await guestReports.forget(instance.uuid, async () => {
      await kept.machine.reset();
      this.#dependencies.lifecycles.reset(instance.uuid);
      // A metad that is away tells its events anew when it is back, and they count.
      return (await metad.status().catch(() => null))?.lastSequence ?? 0;
    });
  }

  async plug(instance: InstanceRecord, part: string): Promise<void> {
    const { keeper } = this.#dependencies;
    const nic = instance.nics.find(({ uuid }) => uuid === part);
    if (nic !== undefined) return keeper.plugNic(instance.uuid, nic);
    const index = instance.disks.findIndex(({ uuid }) => uuid === part);
    const disk = this.#planner.makeDisk(instance, index);
    if (disk.part === undefined) throw new Error(`part ${part} has no port`);
    await this.running(instance.uuid)?.machine.plug({ ...disk.part, disk });
  }

  unplug(uuid: string, part: string): Promise<boolean> {
    return this.#dependencies.keeper.unplug(uuid, part);
  }

  async expect(
    instance: InstanceRecord,
    { accelerator, startedAtMs, files, secrets, signal }: ExpectedMachine,
  ): Promise<KeptMachine> {
    const { keeper, views } = this.#dependencies;
    const { uuid } = instance;
    await keeper.start({
      ...{ instance, kind: 'moving', signal, startedAtMs, withInstanceNics: true },
      makeView: instance.communication
        ? (device, revision) => views.forStart(uuid, device, revision, secrets)
        : null,
      makeSpec: (nics) =>
        Promise.resolve({
          ...this.#planner.makeSpec(instance, accelerator, nics, files),
          isExpected: true,
        }),
    });
    keeper.forgetSecrets(uuid, (device, revision) => views.asGiven(uuid, device, revision));
    const kept = keeper.get(uuid);
    if (kept === undefined) throw new Error(`the QEMU process of ${instance.name} ended at once`);
    return kept;
  }

  async welcome(instance: InstanceRecord): Promise<boolean> {
    const { keeper, views, guestReports, lifecycles } = this.#dependencies;
    const { uuid } = instance;
    const kept = keeper.get(uuid);
    if (kept === undefined) return false;
    if (kept.kind === 'moving') {
      // This is done once, and before anything that may fail.
      guestReports.followAdopted(kept);
      if (instance.communication) lifecycles.followAdopted(kept);
    }
    await keeper.become(instance, 'run');
    // Whoever paused it since then, as a snapshot does, resumes it again.
    if (!this.#resumed.has(kept.machine)) await kept.machine.resume();
    this.#resumed.add(kept.machine);
    if (!instance.communication) return true;
    await keeper.republish(uuid, (device, revision) => views.forRun(uuid, device, revision));
    keeper.forgetSecrets(uuid, (device, revision) => views.asGiven(uuid, device, revision));
    return true;
  }

  async republish(instance: InstanceRecord, secrets: JobSecrets = noSecrets): Promise<void> {
    const { keeper, views } = this.#dependencies;
    const { uuid } = instance;
    await keeper.keepRecord(instance);
    try {
      await keeper.republish(uuid, (device, revision) =>
        views.forRun(uuid, device, revision, secrets),
      );
    } finally {
      keeper.forgetSecrets(uuid, (device, revision) => views.asGiven(uuid, device, revision));
    }
  }

  /** The machine that is about to start has what the record says, and its guest is shown that. */
  async #forgetFormerParts(instance: InstanceRecord): Promise<InstanceRecord> {
    if (instance.partsOfRun === null || this.isRunning(instance.uuid)) return instance;
    return this.#dependencies.instances.update(instance.uuid, (current) => ({
      ...current,
      partsOfRun: null,
    }));
  }
}
