import { createHash } from 'node:crypto';
import type { CatalogueEntry } from '#shared/contract/image-catalogue.ts';
import type { Catalogues } from './catalogue-file.ts';
import type { NamedImage } from './find-image.ts';

type Known = Catalogues['known'];

/**
 * Returns the key of a publisher's last answer. It covers the catalogue and all of the entry, since
 * another catalogue may combine the same file with any list of checksums.
 */
export function keyOfKnown(
  catalogue: string,
  { name, url, checksums, signature, keyring }: CatalogueEntry,
): string {
  const asked = JSON.stringify([catalogue, name, url, checksums, signature, keyring]);
  return createHash('sha256').update(asked).digest('hex');
}

/** Drops answers for entries that no catalogue has. */
export function withoutStrangers(known: Known, all: readonly NamedImage[]): Known {
  const keys = new Set(
    all.flatMap((each) => (each.kind === 'entry' ? [keyOfKnown(each.catalogue, each.entry)] : [])),
  );
  return Object.fromEntries(Object.entries(known).filter(([key]) => keys.has(key)));
}
