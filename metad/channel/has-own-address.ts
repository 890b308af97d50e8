import type { Instance } from './instance.ts';

/**
 * Returns whether the guest may use a source address. The device identifies the guest; a wrong
 * address shows that the guest pretends, or forwards for another host.
 */
export function hasOwnAddress(instance: Instance, address = ''): boolean {
  if (address.includes(':')) return /^fe80:/i.test(address);
  return address === instance.view.channel.ip;
}
