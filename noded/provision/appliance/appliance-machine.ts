import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Accelerator, MachineDisk, MachineNic, MachineSpec } from '../../vmm/machine.ts';
import type { Appliance } from './appliance-files.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import { installingBootEnv } from '../../instances/view/boot-environment.ts';
import { planBoot, planUefi, withChannelFirst } from '../../instances/machines/plan-boot.ts';
import { planSmbios } from '../../instances/view/cloud-init-datasource.ts';
import { diskSerial } from '../../storage/disk-serials.ts';

/** With two CPUs one loads kernel modules while the other reads the agent; more gain nothing. */
export const APPLIANCE_VCPUS = 2;

/**
 * qboot, which QEMU brings for its microvm machines. The BIOS looks for disks to boot from, and
 * sets up all devices; emulated, that is a seventh of the way to the agent. Where the processor is
 * the host's it is next to nothing, so there the BIOS stays.
 */
export const KERNEL_STARTER = '/usr/share/qemu/qboot.rom';

export interface ApplianceMachineInput {
  readonly instance: InstanceRecord;
  readonly appliance: Appliance;
  readonly accelerator: Accelerator;
  /** How many of the host's processors have nothing to do. */
  readonly idleProcessors: number;
  /** Whether there is `KERNEL_STARTER`. */
  readonly hasKernelStarter: boolean;
  readonly nics: readonly MachineNic[];
  /** Disks that carry content: the image, and dumps. */
  readonly contentDisks: readonly MachineDisk[];
  /** Path of a disk by its index; null when it has none of the instance's disks. */
  readonly diskPath: ((index: number) => string) | null;
}

/**
 * The throw-away machine of one installation: the same read-only bytes each time, the instance's
 * disks, what it works with, the channel. Pure.
 */
export function planApplianceMachine(input: ApplianceMachineInput): MachineSpec {
  const { instance, appliance, diskPath } = input;
  const own = diskPath === null ? [] : instance.disks.map((_, index) => diskPath(index));
  const disks: MachineDisk[] = [
    // The same bytes for every install: the host's page cache has them after the first.
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
 * An emulated CPU keeps a processor busy while it waits for the other: on a busy host a second one
 * costs a quarter more of processor time and saves none.
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
  /** The variables of its UEFI firmware, where it has that. */
  readonly variablesPath: string;
  /** Where the cdrom's image is on this node, when it was given by URL. */
  readonly cdromPath: string | undefined;
}

/**
 * The instance itself, booted once from its installation medium: as in normal runs but for the
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
