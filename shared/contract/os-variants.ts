import type { OsInfo } from './api.ts';
import { ownValue } from '../json/own-value.ts';

/** An OS of a list: with its variant where it has some, as in Ganeti. */
export type ListedOs = OsInfo & { readonly listed: string };

/**
 * Each variant as an OS of its own, with what was set for both: hidden or refused by one is hidden
 * or refused.
 */
export function listVariants(os: OsInfo): readonly ListedOs[] {
  if (os.variants.length === 0) return [{ ...os, listed: os.name }];
  return os.variants.map((variant) => {
    const own = ownValue(os.variantSettings, variant);
    const trust = own?.trust ?? os.trust;
    return {
      ...os,
      ...{ trust, trusted: trust.state === 'trusted' },
      hidden: os.hidden || (own?.hidden ?? false),
      blacklisted: os.blacklisted || (own?.blacklisted ?? false),
      listed: `${os.name}+${variant}`,
    };
  });
}

/** Whether a list shows it to who looks for something to install. */
export function isOffered({ valid, hidden, blacklisted }: OsInfo): boolean {
  return valid && !hidden && !blacklisted;
}
