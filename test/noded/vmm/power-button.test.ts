import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPowerButton } from '../../../noded/vmm/power-button.ts';

/** As QEMU 7.2 answered while Debian 12 came up, control before enable. */
const seen = [
  ['before the firmware has begun', '0xffff', '0xffff', 'no-acpi'],
  ['in firmware and boot loader', '0x0000', '0x0000', 'no-acpi'],
  ['when the kernel has switched ACPI on', '0x0001', '0x0020', 'not-heard'],
  ['when it has its button driver', '0x0001', '0x0120', 'heard'],
  ['of a system that polls it', '0x0000', '0x0100', 'heard'],
] as const;

for (const [when, control, enable, expected] of seen) {
  test(`the registers show whether the guest handles the power button ${when}`, () => {
    const answers = [`portw[0x0604] = ${control}\r\n`, `portw[0x0602] = ${enable}\r\n`];
    assert.equal(readPowerButton(answers), expected);
  });
}

test('an unexpected monitor answer gives no result', () => {
  for (const answers of [[], ['', ''], ["unknown command: 'i'\r\n", 'portw[0x0602] = 0x0120']])
    assert.equal(readPowerButton(answers), undefined);
});
