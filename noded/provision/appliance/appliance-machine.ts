import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Accelerator, MachineDisk, MachineNic, MachineSpec } from '../../vmm/machine.ts';
import type { Appliance } from './appliance-files.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import { installingBootEnv } from '../../instances/view/boot-environment.ts';
import { planBoot, planUefi, withChannelFirst } from '../../instances/machines/plan-boot.ts';
import { planSmbios } from '../../instances/view/cloud-init-datasource.ts';
import { diskSerial } from '../../storage/disk-serials.ts';

/** One CPU loads kernel modules while the other reads the agent. A third CPU gains nothing. */
export const APPLIANCE_VCPUS = 2;

/**
 * qboot, the firmware that QEMU ships for its microvm machines. SeaBIOS looks for boot disks and
 * sets up all devices: with TCG, a seventh of the time to the agent. With KVM that time is
 * negligible, so SeaBIOS stays.
 */
export const KERNEL_STARTER = '/usr/share/qemu/qboot.rom';

export interface ApplianceMachineInput {
  readonly instance: InstanceRecord;
  readonly appliance: Appliance;
  readonly accelerator: Accelerator;
  /** Number of idle processors of the host. */
  readonly idleProcessors: number;
  /** Whether the file `KERNEL_STARTER` exists. */
  readonly hasKernelStarter: boolean;
  readonly nics: readonly MachineNic[];
  /** Disks with content: the image and dumps. */
  readonly contentDisks: readonly MachineDisk[];
  /**
   * Returns the path of a disk by its index; null for an appliance without the instance's disks.
   */
  readonly diskPath: ((index: number) => string) | null;
}

/**
 * Plans the appliance of one installation: the root disk, the instance's disks, content disks and
 * the channel. Pure.
 */
export function planApplianceMachine(input: ApplianceMachineInput): MachineSpec {
  const { instance, appliance, diskPath } = input;
  const own = diskPath === null ? [] : instance.disks.map((_, index) => diskPath(index));
  const disks: MachineDisk[] = [
    // `writeback`: after the first installation, the host's page cache has these bytes.
    { path: appliance.rootPath, serial: 'root', readOnly: true, cache: 'writeback' },
    ...own.map((path, index) => ({
      path,
      serial: diskSerial(index),
      readOnly: false,
      reportsFullHost: true,
    })),
    ...input.contentDisks,
  ];
  return {
    uuid: instance.uuid,
    name: instance.name,
    smbios: { uuid: instance.instanceId, manufacturer: 'gnt', product: 'gnt appliance' },
    memoryMiB: appliance.manifest.memoryMiB,
    vcpus: countVcpus(input),
    accelerator: input.accelerator,
    kernel: {
      kernelPath: appliance.kernelPath,
      initrdPath: appliance.initrdPath,
      append: kernelArguments(appliance.manifest, input.accelerator),
    },
    ...(input.accelerator === 'tcg' &&
      input.hasKernelStarter && { kernelStarterPath: KERNEL_STARTER }),
    disks,
    nics: input.nics,
    noReboot: true,
  };
}

function kernelArguments(manifest: Appliance['manifest'], accelerator: Accelerator): string {
  const { kernelArguments, emulatedKernelArguments } = manifest;
  if (accelerator !== 'tcg' || emulatedKernelArguments === '') return kernelArguments;
  return `${kernelArguments} ${emulatedKernelArguments}`;
}

/**
 * With TCG, a virtual CPU uses a processor even while it waits for the other. On a busy host, a
 * second one costs a quarter more processor time and saves no time.
 */
function countVcpus({ accelerator, idleProcessors }: ApplianceMachineInput): number {
  const canHaveAll = accelerator !== 'tcg' || idleProcessors >= APPLIANCE_VCPUS;
  return canHaveAll ? APPLIANCE_VCPUS : 1;
}

export interface MediumMachineInput {
  readonly instance: InstanceRecord;
  readonly accelerator: Accelerator;
  readonly nics: readonly MachineNic[];
  readonly diskPath: (index: number) => string;
  /** UEFI variables, for an instance with UEFI firmware. */
  readonly variablesPath: string;
  /** Path of the downloaded cdrom image, for a cdrom given by URL. */
  readonly cdromPath: string | undefined;
}

/**
 * Plans the instance for one boot from its installation medium, as a normal run with the
 * installation parameters. Pure.
 */
export function planMediumMachine(input: MediumMachineInput): MachineSpec {
  const { instance, cdromPath } = input;
  const parameters = installationParameters(instance);
  return {
    uuid: instance.uuid,
    name: instance.name,
    smbios: planSmbios({ ...instance, communication: true, seedDisk: false }),
    memoryMiB: instance.beparams.memoryMiB,
    vcpus: instance.beparams.vcpus,
    accelerator: input.accelerator,
    disks: instance.disks.map((_, index) => ({
      path: input.diskPath(index),
      serial: diskSerial(index),
      readOnly: false,
    })),
    nics: input.nics,
    noReboot: true,
    uefi: planUefi(parameters, input.variablesPath),
    ...withChannelFirst(
      planBoot(
        cdromPath === undefined ? parameters : { ...parameters, cdrom_image_path: cdromPath },
        'cdrom,disk',
      ),
      installingBootEnv(instance),
    ),
  };
}
