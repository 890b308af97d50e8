import type { DoctorFinding } from '#shared/contract/api.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { findUefi, requireBootRom } from '../../vmm/find-firmware.ts';

/** Only what boots from a network or by UEFI needs them. */
export function examineFirmware(): DoctorFinding {
  const check = 'firmware';
  try {
    const rom = requireBootRom();
    const uefi = orReason(() => `UEFI: ${findUefi().codePath}`);
    return { check, level: 'ok', message: `boot ROM of NICs: ${rom}; ${uefi}`, hint: null };
  } catch (error) {
    const hint = isAppError(error) ? (error.hint ?? null) : null;
    return { check, level: 'warning', message: messageOf(error), hint };
  }
}

function orReason(find: () => string): string {
  try {
    return find();
  } catch (error) {
    return `${messageOf(error)}${isAppError(error) ? `: ${error.hint ?? ''}` : ''}`;
  }
}
