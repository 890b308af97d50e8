/**
 * Reaction of the guest to the power button. `no-acpi`: no operating system has enabled ACPI
 * (firmware, boot loader, nothing bootable, `acpi=off`). `not-heard`: a system has, but does not
 * listen to the button.
 */
export type PowerButton = 'no-acpi' | 'not-heard' | 'heard';

/** Power management registers of a q35 board, as placed by SeaBIOS and OVMF (ACPI 6.5, 4.8.3). */
const PM_BASE = 0x600;
const ENABLE_REGISTER = PM_BASE + 2;
const CONTROL_REGISTER = PM_BASE + 4;
const POWER_BUTTON_ENABLED = 0x100;
const SCI_ENABLED = 1;
/** Value of an unmapped port: the firmware has not begun. */
const NOTHING_THERE = 0xffff;

/** Commands for QEMU's monitor that read both registers without a change in the guest. */
export const powerButtonQuestions = [CONTROL_REGISTER, ENABLE_REGISTER].map(
  (register) => `i /hx 0x${register.toString(16)}`,
);

/**
 * Reads the answers to `powerButtonQuestions`, in their order.
 * @returns undefined for unknown answers of another QEMU version
 */
export function readPowerButton(answers: readonly unknown[]): PowerButton | undefined {
  const [control, enable] = answers.map(readValue);
  if (control === undefined || enable === undefined) return undefined;
  if (control === NOTHING_THERE) return 'no-acpi';
  // True even if the system polls the button without ACPI's interrupt.
  if ((enable & POWER_BUTTON_ENABLED) !== 0) return 'heard';
  return (control & SCI_ENABLED) === 0 ? 'no-acpi' : 'not-heard';
}

/** `portw[0x0602] = 0x0120`. */
function readValue(answer: unknown): number | undefined {
  const value = /= 0x([0-9a-f]{4})\s*$/.exec(String(answer))?.[1];
  return value === undefined ? undefined : Number.parseInt(value, 16);
}
