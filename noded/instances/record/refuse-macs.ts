import { AppError } from '#shared/errors/app-error.ts';

const NO_MAC = '00:00:00:00:00:00';

/** @throws AppError VALIDATION if two NICs share a MAC, or it is not a unicast address */
export function refuseUnusableMacs(macs: readonly string[]): void {
  const twice = macs.find((mac, index) => macs.indexOf(mac) !== index);
  if (twice !== undefined) {
    throw new AppError('VALIDATION', `the MAC address ${twice} is given to two NICs`, {
      hint: 'Choose another address, or omit it.',
    });
  }
  if (macs.includes(NO_MAC)) {
    throw new AppError('VALIDATION', `the MAC address ${NO_MAC} is not usable`, {
      hint: 'Choose another address, or omit it.',
    });
  }
  const multicast = macs.find((mac) => (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1);
  if (multicast !== undefined) {
    throw new AppError('VALIDATION', `the MAC address ${multicast} is a multicast address`, {
      hint: 'Its first byte must be even, as in 02:00:00:12:34:56.',
    });
  }
}
