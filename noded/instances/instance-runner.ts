import { totalmem } from 'node:os';
import type { Clock } from '#shared/clock/clock.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { InstanceDisks } from '../disks/instance-disks.ts';
import { writeSeedDisk, type SeedDocuments } from '../disks/seed-disk.ts';
import type { Accelerator, MachineDisk, MachineNic, MachineSpec } from '../hypervisor/machine.ts';
import { diskSerial } from '../disks/disk-serials.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { Lifecycles } from '../lifecycle/lifecycles-contract.ts';
import { rebootGuest } from '../lifecycle/reboot-guest.ts';
import type { MetadLink } from '../metad-link/metad-link.ts';
import { assertBridge } from '../network/bridged-tap.ts';
import type { GuestReports } from './guest-reports.ts';
import type { InstanceRepository, NewInstance } from '../records/instance-repository.ts';
import { bootEnvOfRun } from './boot-environment.ts';
import { noSecrets, type JobSecrets } from './job-secrets.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';
import { isChannelFirst, planSmbios } from './cloud-init-datasource.ts';
import { installationParameters } from './installation-parameters.ts';
import { planBoot, planUefi, refuseUnbootable, withChannelFirst } from './plan-boot.ts';
import { powerOff } from './power-off.ts';
import { checkMediumFile, readableByAll } from './readable-by-all.ts';
import { planSystemdCredentials } from './systemd-credentials.ts';
import type { Views } from './views.ts';

export interface InstanceRunnerDependencies {
  readonly instances: InstanceRepository;
  readonly keeper: MachineKeeper;
  readonly views: Views;
  readonly metad: MetadLink;
  readonly disks: InstanceDisks;
  readonly guestReports: Pick<GuestReports, 'follow' | 'forget'>;
  readonly lifecycles: Lifecycles;
  readonly chooseAccelerator: (
    wanted: 'auto' | 'kvm' | 'tcg',
    context: JobContext | undefined,
  ) => Promise<Accelerator>;
  readonly clock: Clock;
}

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
  /** Everything about a start that can be refused beforehand. */
  checkRunnable(instance: NewInstance | InstanceRecord): Promise<void>;
  start(instance: InstanceRecord, secrets: JobSecrets, context: JobContext): Promise<void>;
  /**
   * Asks the guest to power off; after the timeout, and what its decommission list may take, the
   * power is cut.
   */
  stop(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind?: 'reboot' | 'stop' | 'terminate',
  ): Promise<void>;
  /**
   * Off and on again; the guest keeps its metadata, secrets included. `soft`: a guest with an agent
   * does it itself, in the same machine.
   */
  reboot(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind?: 'soft' | 'full',
  ): Promise<void>;
  reset(instance: InstanceRecord): Promise<void>;
  /** Shows the guest the record as it is now; secrets that the running metad has, stay there. */
  republish(instance: InstanceRecord, secrets?: JobSecrets): Promise<void>;
}

export function createInstanceRunner(dependencies: InstanceRunnerDependencies): InstanceRunner {
  return new KeeperRunner(dependencies);
}

class KeeperRunner implements InstanceRunner {
  readonly #dependencies: InstanceRunnerDependencies;

  constructor(dependencies: InstanceRunnerDependencies) {
    this.#dependencies = dependencies;
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
    refuseTooMuchMemory(instance.beparams.memoryMiB);
    for (const nic of instance.nics) if (nic.mode === 'bridged') assertBridge(nic.link ?? 'br0');
    const all = [instance.hvparams, installationParameters(instance)];
    if (all.some(({ accel }) => accel === 'kvm')) {
      await this.#dependencies.chooseAccelerator('kvm', undefined);
    }
    refuseUnbootable(instance);
    for (const { kernel_path, initrd_path, cdrom_image_path } of all) {
      for (const path of [kernel_path, initrd_path])
        if (path !== undefined) await readableByAll(path);
      if (cdrom_image_path?.startsWith('/') === true) await checkMediumFile(cdrom_image_path);
    }
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
      makeSpec: (nics) => this.#makeSpec(instance, accelerator, nics),
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
    }));
    context.report.log(`instance ${instance.name} started (${accelerator})`);
  }

  async stop(
    instance: InstanceRecord,
    timeoutS: number,
    context: JobContext,
    kind: 'reboot' | 'stop' | 'terminate' = 'stop',
  ): Promise<void> {
    const { keeper, instances, lifecycles } = this.#dependencies;
    const { uuid } = instance;
    // It would be called stopped while its guest runs on.
    await this.checkDisksUnused(instance);
    await instances.update(instance.uuid, (current) => ({ ...current, adminState: 'down' }));
    const kept = keeper.get(instance.uuid);
    if (kept === undefined) return;
    if (timeoutS === 0) return powerOff(kept, 0, this.#dependencies, context);
    // One that is started again afterwards goes off like any other.
    const scriptsS = await (kind === 'reboot'
      ? lifecycles.announce(uuid, 'stop', kind)
      : lifecycles.announce(uuid, kind));
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
  ): Promise<void> {
    const { keeper, lifecycles, clock } = this.#dependencies;
    await keeper.restart(instance.uuid, async () => {
      // What was changed since its start needs another QEMU.
      const mayStay = kind === 'soft' && timeoutS > 0 && instance.partsOfRun === null;
      const kept = mayStay ? this.running(instance.uuid) : undefined;
      if (kept !== undefined && lifecycles.isListening(instance.uuid)) {
        try {
          if (await rebootGuest(kept, timeoutS, { lifecycles, clock }, context)) return;
        } finally {
          // A cancelled job leaves nothing that a guest would obey later.
          await lifecycles.withdraw(instance.uuid);
        }
      }
      await this.stop(instance, timeoutS, context, 'reboot');
      await this.#start(instance, noSecrets, context, true);
    });
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

  async #makeSpec(
    instance: InstanceRecord,
    accelerator: Accelerator,
    nics: readonly MachineNic[],
  ): Promise<MachineSpec> {
    const { disks } = this.#dependencies;
    // A reinstallation's disks are the instance's from the moment in which the store says so.
    await disks.settle(instance);
    const machineDisks: MachineDisk[] = instance.disks.map((_, index) => ({
      path: disks.pathOf(instance, index),
      serial: diskSerial(index),
      readOnly: false,
    }));
    if (instance.communication && instance.seedDisk) {
      await this.#writeSeed(instance);
      machineDisks.push({ path: disks.seedPathOf(instance), serial: 'cidata', readOnly: true });
    }
    return {
      uuid: instance.uuid,
      name: instance.name,
      smbios: planSmbios(instance),
      smbiosStrings: planSystemdCredentials(instance),
      memoryMiB: instance.beparams.memoryMiB,
      vcpus: instance.beparams.vcpus,
      accelerator,
      disks: machineDisks,
      nics,
      isChannelFirst: isChannelFirst(instance),
      noReboot: false,
      uefi: planUefi(instance.hvparams, disks.variablesPathOf(instance)),
      ...withChannelFirst(
        planBoot(instance.hvparams, 'disk,cdrom'),
        instance.communication ? bootEnvOfRun(instance) : null,
      ),
    };
  }

  /** The documents are metad's own: what the disk says and what the service says cannot differ. */
  async #writeSeed(instance: InstanceRecord): Promise<void> {
    const { disks, metad } = this.#dependencies;
    const read = async (name: keyof SeedDocuments): Promise<Buffer> => {
      const answer = await metad.tree(instance.uuid, `nocloud/${name}`);
      if (answer.status !== 200) throw new Error(`metad answers ${answer.status} for ${name}`);
      return answer.body;
    };
    await writeSeedDisk(disks.seedPathOf(instance), {
      'meta-data': await read('meta-data'),
      'network-config': await read('network-config'),
      'user-data': await read('user-data'),
      'vendor-data': await read('vendor-data'),
    });
  }
}

/** @throws AppError VALIDATION: even with nothing else on the host, it could not run */
function refuseTooMuchMemory(memoryMiB: number): void {
  const hostMiB = Math.floor(totalmem() / MIB);
  if (memoryMiB <= hostMiB) return;
  throw new AppError(
    'VALIDATION',
    `memory of ${memoryMiB} MiB is more than this host's ${hostMiB}`,
    {
      hint: 'give less by -B memory=',
    },
  );
}
