import type { IncomingMessage } from 'node:http';
import type { Address } from './address.ts';

/** In requests to Google's paths, and in their answers. */
export const FLAVOR_HEADER: readonly string[] = ['Metadata-Flavor', 'Google'];
export const NEEDS_FLAVOR = 'the header Metadata-Flavor: Google is required';

/**
 * Returns whether a request to a path of Google lacks its header. A page in a browser of the guest
 * cannot send this header by itself.
 */
export function isFlavorMissing({ headers }: IncomingMessage, address: Address): boolean {
  const isGoogles =
    address.kind === 'service-account' ||
    (address.kind === 'entry' && address.dialect === 'gce') ||
    (address.kind === 'identity' && address.form === 'google');
  return isGoogles && headers['metadata-flavor'] !== 'Google';
}
