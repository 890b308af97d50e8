import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

/** OVMF's code, and its template of the variables. */
export interface UefiFirmware {
  readonly codePath: string;
  readonly variablesPath: string;
}

/** Paths of Debian, of its releases before 12, and of Fedora. */
const UEFI_FIRMWARES: readonly UefiFirmware[] = [
  pair('/usr/share/OVMF', 'OVMF_CODE_4M.fd', 'OVMF_VARS_4M.fd'),
  pair('/usr/share/OVMF', 'OVMF_CODE.fd', 'OVMF_VARS.fd'),
  pair('/usr/share/edk2/ovmf', 'OVMF_CODE.fd', 'OVMF_VARS.fd'),
];
/** Folders in which QEMU itself searches the ROM of a virtio NIC. */
const ROM_FOLDERS = ['/usr/lib/ipxe/qemu', '/usr/share/qemu', '/usr/share/ipxe/qemu'];
/** Contains a BIOS and an EFI part, despite its name. */
const ROM_NAME = 'efi-virtio.rom';

/**
 * Returns the firmware for UEFI guests.
 * @param variablesBytes size of the guest's existing variables, which fit only code of the same
 * size
 * @throws AppError HOST_PREREQUISITE
 */
export function findUefi(
  variablesBytes: number | null = null,
  firmwares: readonly UefiFirmware[] = UEFI_FIRMWARES,
): UefiFirmware {
  const found = firmwares.find(
    ({ codePath, variablesPath }) =>
      isReadable(codePath) &&
      isReadable(variablesPath) &&
      (variablesBytes === null || statSync(variablesPath).size === variablesBytes),
  );
  if (found) return found;
  const names = firmwares.map(({ codePath }) => codePath).join(', ');
  throw new AppError('HOST_PREREQUISITE', `found no UEFI firmware at ${names}`, {
    hint: 'Install it with apt-get install ovmf, or boot with -H firmware=bios',
  });
}

/** Returns the ROM for boots from a network. @throws AppError HOST_PREREQUISITE */
export function requireBootRom(): string {
  const found = ROM_FOLDERS.map((folder) => join(folder, ROM_NAME)).find(isReadable);
  if (found !== undefined) return found;
  throw new AppError('HOST_PREREQUISITE', `found no ${ROM_NAME} in ${ROM_FOLDERS.join(', ')}`, {
    hint: 'Install it: apt-get install ipxe-qemu',
  });
}

function pair(folder: string, code: string, variables: string): UefiFirmware {
  return { codePath: join(folder, code), variablesPath: join(folder, variables) };
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
