/**
 * What the guest makes of its power button: no operating system has ACPI switched on (firmware, a
 * boot loader, nothing bootable, `acpi=off`), one has but does not listen (yet), or it listens.
 */
export type PowerButton = 'no-acpi' | 'not-heard' | 'heard';

/** Where SeaBIOS and OVMF put the power management registers of a q35 machine (ACPI 6.5, 4.8.3). */
const PM_BASE = 0x600;
const ENABLE_REGISTER = PM_BASE + 2;
const CONTROL_REGISTER = PM_BASE + 4;
const POWER_BUTTON_ENABLED = 0x100;
const SCI_ENABLED = 1;
/** What is read where nothing answers: the firmware has not begun. */
const NOTHING_THERE = 0xffff;

/** Commands for QEMU's monitor that read both registers, which changes nothing in the guest. */
export const powerButtonQuestions = [CONTROL_REGISTER, ENABLE_REGISTER].map(
  (register) => `i /hx 0x${register.toString(16)}`,
);

/**
 * The answers to these, in their order. Pure.
 * @returns undefined for what is no answer: another version's monitor
 */
export function readPowerButton(answers: readonly unknown[]): PowerButton | undefined {
  const [control, enable] = answers.map(readValue);
  if (control === undefined || enable === undefined) return undefined;
  if (control === NOTHING_THERE) return 'no-acpi';
  // Also where the system looks at the button by itself, without ACPI's interrupt.
  if ((enable & POWER_BUTTON_ENABLED) !== 0) return 'heard';
  return (control & SCI_ENABLED) === 0 ? 'no-acpi' : 'not-heard';
}

/** `portw[0x0602] = 0x0120`. */
function readValue(answer: unknown): number | undefined {
  const value = /= 0x([0-9a-f]{4})\s*$/.exec(String(answer))?.[1];
  return value === undefined ? undefined : Number.parseInt(value, 16);
}
