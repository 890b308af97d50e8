import { createHash } from 'node:crypto';
import type { CatalogueEntry } from '#shared/contract/image-catalogue.ts';
import type { Catalogues } from './catalogue-file.ts';
import type { NamedImage } from './find-image.ts';

type Known = Catalogues['known'];

/**
 * What a publisher said last is of one entry of one catalogue, as that asks for it: another
 * catalogue may name the same file, and any list of checksums with it.
 */
export function keyOfKnown(
  catalogue: string,
  { name, url, checksums, signature, keyring }: CatalogueEntry,
): string {
  const asked = JSON.stringify([catalogue, name, url, checksums, signature, keyring]);
  return createHash('sha256').update(asked).digest('hex');
}

/** What no catalogue names any more is forgotten. */
export function withoutStrangers(known: Known, all: readonly NamedImage[]): Known {
  const keys = new Set(
    all.flatMap((each) => (each.kind === 'entry' ? [keyOfKnown(each.catalogue, each.entry)] : [])),
  );
  return Object.fromEntries(Object.entries(known).filter(([key]) => keys.has(key)));
}
