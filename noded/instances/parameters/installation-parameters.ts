import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HvParameters } from '#shared/contract/machine-parameters.ts';

/**
 * Returns the hypervisor parameters of an appliance, or of an instance booted from its installation
 * medium. The kernel of normal runs is left out, since it would boot in place of another medium.
 * Pure.
 */
export function installationParameters({
  hvparams,
  installParameters,
}: Pick<InstanceRecord, 'hvparams' | 'installParameters'>): HvParameters {
  const { kernel_path, boot_order, cdrom_image_path } = installParameters;
  const isOtherMedium = (boot_order ?? cdrom_image_path) !== undefined;
  const own = { ...hvparams };
  if (kernel_path === undefined && isOtherMedium) {
    delete own.kernel_path;
    delete own.initrd_path;
    delete own.kernel_args;
  }
  return { ...own, ...installParameters };
}
