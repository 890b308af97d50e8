import type { InstanceRecord } from '#shared/contract/instance.ts';
import { diskSerial } from '../../storage/disk-serials.ts';
import type { InstanceDisks } from '../../storage/instance-disks.ts';
import { writeSeedDisk, type SeedDocuments } from '../../storage/seed-disk.ts';
import type { Accelerator, MachineDisk, MachineNic, MachineSpec } from '../../vmm/machine.ts';
import type { MetadLink } from '../../net/metad-link/metad-link.ts';
import { bootEnvOfRun } from '../view/boot-environment.ts';
import { hasSeedDisk, isChannelFirst, planSmbios } from '../view/cloud-init-datasource.ts';
import { planBoot, planUefi, withChannelFirst } from './plan-boot.ts';
import { planSystemdCredentials } from '../view/systemd-credentials.ts';

/** Files that QEMU opens. */
export interface MachineFiles {
  readonly disks: readonly string[];
  /** Path of the seed disk, or null. */
  readonly seed: string | null;
}

export interface MachinePlannerDependencies {
  readonly disks: InstanceDisks;
  readonly metad: MetadLink;
}

/**
 * Plans the QEMU process of a normal run from the instance's record.
 */
export class MachinePlanner {
  readonly #disks: InstanceDisks;
  readonly #metad: MetadLink;

  constructor({ disks, metad }: MachinePlannerDependencies) {
    this.#disks = disks;
    this.#metad = metad;
  }

  /** Returns the disks of the record, and writes the seed disk from metad's documents. */
  async makeFiles(instance: InstanceRecord): Promise<MachineFiles> {
    const disks = this.#disks;
    // New disks of a reinstallation count as soon as the record says so.
    await disks.settle(instance);
    const hasSeed = hasSeedDisk(instance);
    if (hasSeed) await this.#writeSeed(instance);
    return {
      disks: instance.disks.map((_, index) => disks.pathOf(instance, index)),
      seed: hasSeed ? disks.seedPathOf(instance) : null,
    };
  }

  makeSpec(
    instance: InstanceRecord,
    accelerator: Accelerator,
    nics: readonly MachineNic[],
    files: MachineFiles,
  ): MachineSpec {
    const disks = this.#disks;
    const machineDisks = files.disks.map((path, index) => this.makeDisk(instance, index, path));
    if (files.seed !== null)
      machineDisks.push({ path: files.seed, serial: 'cidata', readOnly: true });
    return {
      uuid: instance.uuid,
      name: instance.name,
      smbios: planSmbios(instance),
      smbiosStrings: planSystemdCredentials(instance),
      memoryMiB: instance.beparams.memoryMiB,
      vcpus: instance.beparams.vcpus,
      hvparams: instance.hvparams,
      accelerator,
      disks: machineDisks,
      nics,
      isChannelFirst: isChannelFirst(instance),
      noReboot: false,
      hasPorts: true,
      uefi: planUefi(instance.hvparams, disks.variablesPathOf(instance)),
      ...withChannelFirst(
        planBoot(instance.hvparams, 'disk,cdrom'),
        instance.communication ? bootEnvOfRun(instance) : null,
      ),
    };
  }

  makeDisk(
    instance: InstanceRecord,
    index: number,
    path = this.#disks.pathOf(instance, index),
  ): MachineDisk {
    const { uuid = '', port } = instance.disks[index] ?? {};
    return {
      path,
      serial: diskSerial(index),
      readOnly: false,
      part: port === undefined ? undefined : { uuid, port },
    };
  }

  /** Uses metad's documents, so that disk and service agree. */
  async #writeSeed(instance: InstanceRecord): Promise<void> {
    const disks = this.#disks;
    const read = async (name: keyof SeedDocuments): Promise<Buffer> => {
      const answer = await this.#metad.tree(instance.uuid, `nocloud/${name}`);
      if (answer.status !== 200) throw new Error(`gnt-metad answers ${answer.status} for ${name}`);
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
