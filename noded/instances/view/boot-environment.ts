import { installsSystem, LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Owner = Pick<InstanceRecord, 'bootEnv'>;

/**
 * Returns the BootEnv that installs the instance in place of another medium; null for none. Pure.
 */
export function installingBootEnv({ bootEnv }: Owner): string | null {
  return installsSystem(bootEnv) ? bootEnv : null;
}

/**
 * Returns the BootEnv of normal runs; null for the disk. An installing BootEnv is for installations
 * only: otherwise a guest that reboots would install itself again. Pure.
 */
export function bootEnvOfRun({ bootEnv }: Owner): string | null {
  return bootEnv === LOCAL_BOOT_ENV || installsSystem(bootEnv) ? null : bootEnv;
}

/** Refuses a BootEnv that the instance could never boot into. Pure. @throws AppError VALIDATION */
export function refuseUnbootableEnv(
  instance: Pick<
    InstanceRecord,
    | 'name'
    | 'bootEnv'
    | 'communication'
    | 'dialects'
    | 'hvparams'
    | 'installParameters'
    | 'metadataToken'
  >,
): void {
  const { name, bootEnv, communication, dialects, hvparams, installParameters } = instance;
  const refuse = (reason: string, hint: string): never => {
    throw new AppError(
      'VALIDATION',
      `'${name}' cannot boot into the boot environment ${bootEnv}: ${reason}`,
      {
        hint,
      },
    );
  };
  if (installingBootEnv(instance) !== null) {
    const { boot_order, cdrom_image_path, kernel_path } = installParameters;
    if ((boot_order ?? cdrom_image_path ?? kernel_path) !== undefined)
      refuse('it has another installation medium', 'Unset it: --install-parameters none');
    return;
  }
  if (bootEnvOfRun(instance) === null) return;
  if (!communication)
    refuse('it boots through the channel, which is off in normal runs', 'Add --communication yes.');
  if (!dialects.includes('ganeti'))
    refuse('its files are served by the ganeti dialect', 'Add ganeti to --dialects.');
  if (instance.metadataToken === 'required')
    refuse('its firmware loads files without a session token', 'Add --metadata-token optional.');
  if (hvparams.kernel_path !== undefined)
    refuse('a kernel_path excludes every other way to boot', 'Reset it: -H kernel_path=default');
}
