import type { Instance } from './instance.ts';

/**
 * The device has told who it is; a wrong source address shows a guest that pretends, or forwards
 * for somebody else.
 */
export function hasOwnAddress(instance: Instance, address = ''): boolean {
  if (address.includes(':')) return /^fe80:/i.test(address);
  return address === instance.view.channel.ip;
}
