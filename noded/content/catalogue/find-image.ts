import { BUILT_IN, type CatalogueEntry } from '#shared/contract/image-catalogue.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import type { ImportedImage } from './catalogue-file.ts';

export type NamedImage =
  | { readonly catalogue: string; readonly kind: 'entry'; readonly entry: CatalogueEntry }
  | { readonly catalogue: string; readonly kind: 'imported'; readonly image: ImportedImage };

export function namesOf(named: NamedImage): readonly string[] {
  return named.kind === 'imported'
    ? [named.image.name]
    : [named.entry.name, ...named.entry.aliases];
}

/**
 * Finds the image of a name. Imported images precede built-in ones, and both precede added
 * catalogues, which cannot take over their names. `CATALOGUE:NAME` searches one catalogue.
 * @param all in this order
 * @throws AppError IMAGE_NOT_FOUND, or CONFLICT when several added catalogues have the name
 */
export function findImage(reference: string, all: readonly NamedImage[]): NamedImage {
  const at = reference.indexOf(':');
  const catalogue = at === -1 ? null : reference.slice(0, at);
  const name = reference.slice(at + 1);
  const within = all.filter((each) => catalogue === null || each.catalogue === catalogue);
  // A name precedes an alias of another image.
  const found = [
    ...within.filter((each) => namesOf(each)[0] === name),
    ...within.filter((each) => namesOf(each).slice(1).includes(name)),
  ];
  const first =
    found.find(({ kind }) => kind === 'imported') ??
    found.find((each) => each.catalogue === BUILT_IN) ??
    found[0];
  if (first === undefined) throw notFound(reference, within);
  if (first.kind === 'imported' || first.catalogue === BUILT_IN) return first;
  const other = found.find((each) => each.catalogue !== first.catalogue);
  if (other === undefined) return first;
  throw new AppError(
    'CONFLICT',
    `the image '${name}' exists in the catalogues ${first.catalogue} and ${other.catalogue}`,
    { hint: `Name the catalogue: ${first.catalogue}:${name} or ${other.catalogue}:${name}` },
  );
}

function notFound(reference: string, within: readonly NamedImage[]): AppError {
  const near = suggest(reference, within.flatMap(namesOf));
  return new AppError('IMAGE_NOT_FOUND', `there is no image '${reference}'`, {
    hint: `${near === null ? '' : `Did you mean ${near}? `}List the images with gnt-image list. Write a local file as ./NAME or as an absolute path.`,
  });
}
