import type { OsInfo } from './api.ts';
import { ownValue } from '../json/own-value.ts';

/** An OS of a list, with its variant if it has variants, as in Ganeti. */
export type ListedOs = OsInfo & { readonly listed: string };

/** Returns each variant as an OS. A flag of the OS or of the variant hides or blacklists it. */
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

/** Tells whether a list for operators shows the OS. */
export function isOffered({ valid, hidden, blacklisted }: OsInfo): boolean {
  return valid && !hidden && !blacklisted;
}
