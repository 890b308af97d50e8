import type { CatalogueInfo, ImageInfo } from '#shared/contract/image-catalogue.ts';
import { MIB } from '#shared/units/bytes.ts';
import { fieldsOf } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

const image = fieldsOf<ImageInfo>();
const catalogue = fieldsOf<CatalogueInfo>();

/** Returns the unambiguous name of an image. */
export function referenceOf({ name, catalogue: of, isShadowed }: ImageInfo): string {
  return isShadowed ? `${of}:${name}` : name;
}

/** How a checksum was verified, for display. */
export const VERIFIED_BY: Readonly<Record<ImageInfo['verified'], string>> = {
  signature: 'the signature of the publisher',
  https: 'the checksums of the publisher, over https',
  catalogue: 'the checksum in the catalogue',
  import: 'the checksum of what was imported',
};

export const imageFields: FieldTable<ImageInfo> = {
  program: 'gnt-image',
  defaults: ['name', 'catalogue', 'user', 'min_disk', 'cached', 'title'],
  fields: [
    image.text(
      'name',
      'Image',
      'Name, with the catalogue if the name alone is ambiguous',
      referenceOf,
    ),
    image.text('catalogue', 'Catalogue', 'Catalogue of the name', (i) => i.catalogue),
    image.text('aliases', 'Aliases', 'Other names', (i) => i.aliases.join(',') || null),
    image.text('title', 'Title', 'Title', (i) => i.title || null),
    image.text('user', 'User', 'Login user that cloud-init creates', (i) => i.user),
    image.size('min_disk', 'MinDisk', 'Smallest disk that the image fits on', (i) =>
      i.minDiskBytes === null ? null : i.minDiskBytes / MIB,
    ),
    image.text('format', 'Format', 'Format, or auto', (i) => i.format),
    image.text('cloud_init', 'CloudInit', 'Version of cloud-init', (i) => i.cloudInit),
    image.text('source', 'Source', 'URL, or file on the node', (i) => i.source),
    image.text('checksum', 'Checksum', 'Checksum at the last use', (i) => i.checksum),
    image.text(
      'verified',
      'Verified',
      'What vouches for the checksum: a signature, https, the catalogue, or the import',
      (i) => i.verified,
    ),
    image.text('cached', 'Cached', 'Whether the image is in the cache of the node', (i) =>
      i.isCached ? 'yes' : 'no',
    ),
  ],
};

export const catalogueFields: FieldTable<CatalogueInfo> = {
  defaults: ['name', 'images', 'refused', 'updated', 'source'],
  fields: [
    catalogue.text('name', 'Catalogue', 'Name', (c) => c.name),
    catalogue.number(
      'images',
      'Images',
      'Number of images for the architecture of this node',
      (c) => c.images,
    ),
    catalogue.number('refused', 'Refused', 'Number of skipped entries', (c) => c.refused),
    catalogue.time('updated', 'Updated', 'Time of the last update', (c) => c.updatedAtMs),
    catalogue.text('source', 'Source', 'URL or file', (c) => c.source),
  ],
};
