import { BOOT_PARAMETERS } from '#shared/contract/parameter-keys.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootDevice, MachineSpec } from '../../vmm/machine.ts';
import { parseSource } from '../../content/downloads/transfer/source-url.ts';
import { installingBootEnv } from '../view/boot-environment.ts';
import { installationParameters } from '../parameters/installation-parameters.ts';

type Bootable = Pick<InstanceRecord, 'hvparams' | 'installParameters' | 'nics'>;

/**
 * Plans the boot from Ganeti's hypervisor parameters.
 * @param defaultOrder of devices without `boot_order`, with a medium
 * @throws AppError VALIDATION naming an invalid word of `boot_order`
 */
export function planBoot(
  parameters: HvParameters,
  defaultOrder: string,
): Pick<MachineSpec, 'bootOrder' | 'cdromPath' | 'kernel'> {
  const { boot_order, cdrom_image_path, kernel_path, initrd_path, kernel_args } = parameters;
  return {
    bootOrder: parseBootOrder(
      boot_order ?? (cdrom_image_path === undefined ? 'disk' : defaultOrder),
    ),
    cdromPath: cdrom_image_path,
    kernel:
      kernel_path === undefined
        ? undefined
        : { kernelPath: kernel_path, initrdPath: initrd_path, append: kernel_args },
  };
}

/** @param variablesPath file of the firmware's variables */
export function planUefi(
  { firmware, kernel_path }: HvParameters,
  variablesPath: string,
): MachineSpec['uefi'] {
  // A kernel loaded by QEMU needs no firmware, and OVMF would delay it.
  return firmware === 'uefi' && kernel_path === undefined ? { variablesPath } : undefined;
}

/** Separated by commas, or by colons, because commas separate parameters on the command line. */
function parseBootOrder(text: string): readonly BootDevice[] {
  return text.split(/[,:]/).map((word) => {
    if (word === 'disk' || word === 'cdrom' || word === 'network') return word;
    if (word === 'floppy')
      throw refusal('boot_order: floppies are not supported', 'Use a cdrom image.');
    throw refusal(`boot_order: '${word}' is not disk, cdrom or network`);
  });
}

/** Returns whether the instance installs itself from its own medium. */
export function hasMedium(
  instance: Pick<InstanceRecord, 'installParameters' | 'bootEnv'>,
): boolean {
  return hasMediumParameters(instance) || installingBootEnv(instance) !== null;
}

function hasMediumParameters({
  installParameters,
}: Pick<InstanceRecord, 'installParameters'>): boolean {
  return BOOT_PARAMETERS.some((key) => installParameters[key] !== undefined);
}

/** Boots from the channel first, for an instance with a BootEnv. */
export function withChannelFirst<Boot extends Pick<MachineSpec, 'bootOrder'>>(
  boot: Boot,
  bootEnv: string | null,
): Boot {
  if (bootEnv === null) return boot;
  return { ...boot, bootOrder: ['channel', ...(boot.bootOrder ?? ['disk'])] };
}

/**
 * Returns whether an image or a medium wrote the first disk, so that hooks must not partition it.
 */
export function hasSystemOnDisk(
  instance: Pick<InstanceRecord, 'osImage' | 'installParameters' | 'bootEnv'>,
): boolean {
  return instance.osImage !== null || hasMedium(instance);
}

/** @throws AppError VALIDATION */
export function refuseImageAndMedium(
  instance: Pick<InstanceRecord, 'osImage' | 'installParameters' | 'bootEnv'>,
): void {
  if (instance.osImage === null || !hasMedium(instance)) return;
  throw refusal(
    'an OS image and an installation medium exclude each other: both write the first disk',
    'Give one of them. Unset a stored one with --os-image none, or with --install-parameters none and --bootenv none.',
  );
}

/**
 * Refuses parameters that cannot boot, in normal runs and from the medium.
 * @throws AppError VALIDATION, NOT_SUPPORTED
 */
export function refuseUnbootable(instance: Bootable): void {
  refuseUnbootableRun(instance);
  refuseUnbootableMedium(instance);
}

/**
 * Refuses parameters that cannot boot in normal runs.
 * @throws AppError VALIDATION, NOT_SUPPORTED
 */
export function refuseUnbootableRun(instance: Pick<Bootable, 'hvparams' | 'nics'>): void {
  const { hvparams } = instance;
  refuseUnbootableNetwork(hvparams, instance);
  if (hvparams.cdrom_image_path?.startsWith('/') === false) {
    throw refusal(
      `cdrom_image_path '${hvparams.cdrom_image_path}' is not an absolute path`,
      'Only --install-parameters accepts a URL.',
    );
  }
}

function refuseUnbootableMedium(instance: Bootable): void {
  const { installParameters } = instance;
  if (!hasMediumParameters(instance)) return;
  const parameters = installationParameters(instance);
  const { cdrom_image_path: cdrom } = installParameters;
  if (cdrom !== undefined && parseSource(cdrom) === undefined) {
    throw refusal(
      `cdrom_image_path '${cdrom}' is neither an absolute path nor a URL (http, https, ftp)`,
    );
  }
  refuseHalfKernel(parameters);
  if (parameters.kernel_path === undefined) {
    refuseUnbootableNetwork(parameters, instance);
    refuseNoMedium(parameters);
  } else if (installParameters.boot_order !== undefined) {
    throw refusal(
      'a kernel_path excludes every other way to boot',
      'Leave out boot_order or kernel_path.',
    );
  }
}

function refuseHalfKernel({ kernel_path, initrd_path, kernel_args }: HvParameters): void {
  for (const path of [kernel_path, initrd_path]) {
    if (path?.startsWith('/') === false) {
      const hint = 'Download it to the node: QEMU reads kernel and initrd from files.';
      throw refusal(`'${path}' is not an absolute path`, hint);
    }
  }
  if (kernel_path === undefined && (initrd_path ?? kernel_args) !== undefined) {
    throw refusal('initrd_path and kernel_args need a kernel_path');
  }
}

/** Refuses an installation without a medium, since the disks are empty. */
function refuseNoMedium(parameters: HvParameters): void {
  const order = planBoot(parameters, 'cdrom,disk').bootOrder ?? [];
  if (order.includes('cdrom') && parameters.cdrom_image_path === undefined) {
    throw refusal(
      'boot_order names cdrom, but there is no cdrom_image_path',
      'Give it a path or a URL.',
    );
  }
  if (order.every((device) => device === 'disk')) {
    throw refusal(
      `--install-parameters boot_order=${parameters.boot_order ?? ''} names no installation medium: the disks are empty`,
      'Name a cdrom_image_path, a kernel_path or boot_order=network, or unset boot_order with boot_order=none',
    );
  }
}

/** Refuses a boot from QEMU's user-mode network, which has no PXE server. */
function refuseUnbootableNetwork(parameters: HvParameters, { nics }: Pick<Bootable, 'nics'>): void {
  const { bootOrder = [] } = planBoot(parameters, 'disk');
  const isAsked = bootOrder.includes('network') && parameters.kernel_path === undefined;
  if (!isAsked || nics.some(({ mode }) => mode === 'bridged')) return;
  throw refusal(
    `boot_order=${parameters.boot_order ?? ''}: the instance has no NIC that can boot from a network`,
    'Add a bridged NIC, for example --net 0:mode=bridged,link=br0. A mode=user NIC finds no PXE server, and the channel never boots.',
  );
}

function refusal(message: string, hint?: string): AppError {
  return new AppError('VALIDATION', message, { hint });
}
