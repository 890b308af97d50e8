import type { DoctorFinding } from '#shared/contract/api.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { findUefi, requireBootRom } from '../../vmm/find-firmware.ts';
import { ok, warning } from './check.ts';

/** Warns only: just network boot and UEFI need these files. */
export function examineFirmware(): DoctorFinding {
  const check = 'firmware';
  try {
    const rom = requireBootRom();
    const uefi = orReason(() => `UEFI: ${findUefi().codePath}`);
    return ok(check, `boot ROM of NICs: ${rom}; ${uefi}`);
  } catch (error) {
    const hint = isAppError(error) ? (error.hint ?? null) : null;
    return warning(check, messageOf(error), hint);
  }
}

function orReason(find: () => string): string {
  try {
    return find();
  } catch (error) {
    return `${messageOf(error)}${isAppError(error) ? `: ${error.hint ?? ''}` : ''}`;
  }
}
