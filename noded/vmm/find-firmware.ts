import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';

/** OVMF's code, and the variables that every machine begins with. */
export interface UefiFirmware {
  readonly codePath: string;
  readonly variablesPath: string;
}

/** Where Debian, its releases before 12, and Fedora have theirs. */
const UEFI_FIRMWARES: readonly UefiFirmware[] = [
  pair('/usr/share/OVMF', 'OVMF_CODE_4M.fd', 'OVMF_VARS_4M.fd'),
  pair('/usr/share/OVMF', 'OVMF_CODE.fd', 'OVMF_VARS.fd'),
  pair('/usr/share/edk2/ovmf', 'OVMF_CODE.fd', 'OVMF_VARS.fd'),
];
/** Where QEMU itself looks for the ROM of a virtio NIC: it is not told. */
const ROM_FOLDERS = ['/usr/lib/ipxe/qemu', '/usr/share/qemu', '/usr/share/ipxe/qemu'];
/** With both a BIOS' and EFI's half, whatever its name says. */
const ROM_NAME = 'efi-virtio.rom';

/**
 * Firmware for machines that ask for UEFI.
 * @param variablesBytes of the variables that a machine has already, which fit one code alone
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

/** The ROM that machines boot from a network with. @throws AppError HOST_PREREQUISITE */
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
