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
import type { NicTaps } from '../net/tenant/nic-taps.ts';
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
  readonly nicTaps: Pick<NicTaps, 'check'>;
  readonly guestReports: Pick<GuestReports, 'follow' | 'followAdopted' | 'forget'>;
  readonly lifecycles: Lifecycles;
  readonly chooseAccelerator: (
    wanted: 'auto' | 'kvm' | 'tcg',
    context: JobContext | undefined,
  ) => Promise<Accelerator>;
  readonly clock: Clock;
}

/** An instance whose guest arrives from another node. */
export interface ExpectedMachine {
  readonly accelerator: Accelerator;
  readonly startedAtMs: number;
  readonly files: MachineFiles;
  readonly secrets: JobSecrets;
  readonly signal: AbortSignal;
}

/** `interlude`: the job stops the instance and starts it again at its end. */
type StopKind = 'reboot' | 'interlude' | 'stop' | 'terminate';

export class InstanceRunner {
  readonly #dependencies: InstanceRunnerDependencies;
  readonly #planner: MachinePlanner;
  /** Machines whose guests arrived from another node and were resumed. */
  readonly #resumed = new WeakSet<KeptMachine['machine']>();

  constructor(dependencies: InstanceRunnerDependencies) {
    this.#dependencies = dependencies;
    this.#planner = new MachinePlanner(dependencies);
  }

  /** Returns the machine of a normal run; never an appliance. */
  running(uuid: string): KeptMachine | undefined {
    const kept = this.#dependencies.keeper.get(uuid);
    return kept?.kind === 'run' ? kept : undefined;
  }

  isRunning(uuid: string): boolean {
    // A machine that has ended and is being cleaned up does not run. A start waits for the cleanup.
    return this.#dependencies.keeper.get(uuid)?.machine.isRunning() ?? false;
  }

  /**
   * Checks that no unknown QEMU process uses the disks of a stopped instance.
   * @throws AppError DISK_IN_USE if a process that this daemon does not manage has them open
   */
  async checkDisksUnused(instance: NewInstance | InstanceRecord): Promise<void> {
    if (!this.isRunning(instance.uuid)) await this.#dependencies.disks.checkUnused(instance);
  }

  /** Refuses a start that would fail, before anything changes. */
  async checkRunnable(instance: NewInstance | InstanceRecord): Promise<void> {
    await this.checkDisksUnused(instance);
    // The vcpus of a stored record stay valid on a node with fewer processors.
    refuseOversized({ ...instance.beparams, vcpus: 0 });
    for (const nic of instance.nics) await this.#dependencies.nicTaps.check(nic);
    refuseUnbootableRun(instance);
    await this.#checkParameters(instance.hvparams);
  }

  /** Refuses an installation that would fail, or that the following start would. */
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
    // By then QEMU has the file open, or did not start.
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

  /**
   * Asks the guest to power off. Cuts the power after the timeout plus the time that its
   * decommission scripts may take.
   */
  async stop(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind: StopKind = 'stop',
  ): Promise<void> {
    const { keeper, instances, lifecycles } = this.#dependencies;
    const { uuid } = instance;
    // Without this check an instance whose guest still runs would be recorded as stopped.
    await this.checkDisksUnused(instance);
    // Recorded before the stop: a reader of a stopped instance then knows if it is to stay stopped.
    const stoppedByJob = kind === 'reboot' || kind === 'interlude' ? context.jobId : null;
    await instances.update(uuid, (current) => ({ ...current, adminState: 'down', stoppedByJob }));
    const kept = keeper.get(instance.uuid);
    if (kept === undefined) return;
    if (timeoutS === 0) return powerOff(kept, 0, this.#dependencies, context);
    // A job's interlude runs the decommission list of a plain stop.
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

  /**
   * Stops and starts the instance. The guest keeps its metadata, secrets included. `soft`: a guest
   * with an agent reboots by itself in the same QEMU process.
   * @returns why its decommission list failed, or null
   */
  async reboot(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind: 'soft' | 'full' = 'full',
  ): Promise<string | null> {
    const { keeper, lifecycles, clock } = this.#dependencies;
    let failure: string | null = null;
    await keeper.restart(instance.uuid, async () => {
      // Settings changed since the start need a new QEMU process.
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
          // After a cancelled job, the guest must not obey its request later.
          await lifecycles.withdraw(instance.uuid);
        }
      }
      try {
        await this.stop(instance, timeoutS, context, 'reboot');
        // Read before the start, which begins the next run.
        failure = undecommissionedReason(instance, lifecycles);
        await this.#start(instance, noSecrets, context, true);
      } catch (error) {
        // After an interruption the next daemon decides.
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
      // An unreachable metad replays its events when it is back. They count for the new boot.
      return (await metad.status().catch(() => null))?.lastSequence ?? 0;
    });
  }

  /** Plugs a disk or NIC into the port on its record. @throws AppError QMP */
  async plug(instance: InstanceRecord, part: string): Promise<void> {
    const { keeper } = this.#dependencies;
    const nic = instance.nics.find(({ uuid }) => uuid === part);
    if (nic !== undefined) return keeper.plugNic(instance.uuid, nic);
    const index = instance.disks.findIndex(({ uuid }) => uuid === part);
    const disk = this.#planner.makeDisk(instance, index);
    if (disk.part === undefined) throw new Error(`part ${part} has no port`);
    await this.running(instance.uuid)?.machine.plug({ ...disk.part, disk });
  }

  /**
   * Unplugs a disk or NIC.
   * @returns false if the guest does not release it in time
   * @throws AppError QMP
   */
  unplug(uuid: string, part: string): Promise<boolean> {
    return this.#dependencies.keeper.unplug(uuid, part);
  }

  /**
   * Prepares a QEMU process for a guest that runs on another node, without letting it run.
   * @throws AppError NOT_SUPPORTED if the guest's QEMU process was started in a different way
   */
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

  /**
   * Resumes a guest that arrived from another node. May be repeated after a failure.
   * @returns false if its QEMU process has ended
   */
  async welcome(instance: InstanceRecord): Promise<boolean> {
    const { keeper, views, guestReports, lifecycles } = this.#dependencies;
    const { uuid } = instance;
    const kept = keeper.get(uuid);
    if (kept === undefined) return false;
    if (kept.kind === 'moving') {
      // Done once, and before any call that may fail.
      guestReports.followAdopted(kept);
      if (instance.communication) lifecycles.followAdopted(kept);
    }
    await keeper.become(instance, 'run');
    // A guest that another job paused since then, such as a snapshot, is resumed by that job.
    if (!this.#resumed.has(kept.machine)) await kept.machine.resume();
    this.#resumed.add(kept.machine);
    if (!instance.communication) return true;
    await keeper.republish(uuid, (device, revision) => views.forRun(uuid, device, revision));
    keeper.forgetSecrets(uuid, (device, revision) => views.asGiven(uuid, device, revision));
    return true;
  }

  /** Publishes the present record to the guest. Secrets that metad already holds stay there. */
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

  /**
   * Drops the settings of the former run: the next QEMU process starts with those of the record.
   */
  async #forgetFormerParts(instance: InstanceRecord): Promise<InstanceRecord> {
    if (instance.partsOfRun === null || this.isRunning(instance.uuid)) return instance;
    return this.#dependencies.instances.update(instance.uuid, (current) => ({
      ...current,
      partsOfRun: null,
    }));
  }
}
