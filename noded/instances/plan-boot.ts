import type { HvParameters } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BootDevice, MachineSpec } from '../hypervisor/machine.ts';

/**
 * What a machine boots from, by Ganeti's hypervisor parameters. Pure.
 * @param defaultOrder of devices, when `boot_order` is not set and there is a medium
 * @throws AppError VALIDATION naming a word of `boot_order` that is none
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

/**
 * Devices separated by commas (or colons, since commas separate parameters on the command line).
 */
function parseBootOrder(text: string): readonly BootDevice[] {
  return text.split(/[,:]/).map((word) => {
    if (word === 'disk' || word === 'cdrom' || word === 'network') return word;
    throw new AppError('VALIDATION', `boot_order: '${word}' is none of disk, cdrom, network`);
  });
}

/** An installation medium is named: something other than the disk to boot from. */
export function hasMedium(parameters: Partial<HvParameters>): boolean {
  return (
    parameters.cdrom_image_path !== undefined ||
    parameters.kernel_path !== undefined ||
    (parameters.boot_order ?? '').includes('network')
  );
}
