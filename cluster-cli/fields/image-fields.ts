import type { CatalogueInfo, ImageInfo } from '#shared/contract/image-catalogue.ts';
import { MIB } from '#shared/units/bytes.ts';
import { fieldsOf } from '../render/field.ts';
import type { FieldTable } from '../render/select.ts';

const image = fieldsOf<ImageInfo>();
const catalogue = fieldsOf<CatalogueInfo>();

/** The word that means this image and no other. */
export function referenceOf({ name, catalogue: of, isShadowed }: ImageInfo): string {
  return isShadowed ? `${of}:${name}` : name;
}

/** What vouches for a checksum, in words. */
export const VERIFIED_BY: Readonly<Record<ImageInfo['verified'], string>> = {
  signature: "the publisher's signature of the list of checksums",
  https: 'the list of checksums, over https',
  catalogue: 'the checksum in the catalogue',
  import: 'the checksum of what was imported',
};

/** Columns of `gnt-image list`. */
export const imageFields: FieldTable<ImageInfo> = {
  defaults: ['name', 'catalogue', 'user', 'min_disk', 'cached', 'title'],
  fields: [
    image.text('name', 'Image', 'Name, with its catalogue where another one has it', referenceOf),
    image.text('catalogue', 'Catalogue', 'Where the name is from', (i) => i.catalogue),
    image.text('aliases', 'Aliases', 'Other names', (i) => i.aliases.join(',') || null),
    image.text('title', 'Title', 'What it is', (i) => i.title || null),
    image.text('user', 'User', 'Whom its cloud-init lets in', (i) => i.user),
    image.size('min_disk', 'MinDisk', 'Size of the disk that it needs', (i) =>
      i.minDiskBytes === null ? null : i.minDiskBytes / MIB,
    ),
    image.text('format', 'Format', 'Its format, or auto', (i) => i.format),
    image.text('cloud_init', 'CloudInit', 'Version of its cloud-init', (i) => i.cloudInit),
    image.text('source', 'Source', 'Its URL, or its file on the node', (i) => i.source),
    image.text(
      'checksum',
      'Checksum',
      'As it was published when it was asked for last',
      (i) => i.checksum,
    ),
    image.text(
      'verified',
      'Verified',
      'What vouches for the checksum: a signature, https, the catalogue, or the import',
      (i) => i.verified,
    ),
    image.text('cached', 'Cached', 'Whether it can be had without a network', (i) =>
      i.isCached ? 'yes' : 'no',
    ),
  ],
};

/** Columns of `gnt-image catalogues`. */
export const catalogueFields: FieldTable<CatalogueInfo> = {
  defaults: ['name', 'images', 'refused', 'updated', 'source'],
  fields: [
    catalogue.text('name', 'Catalogue', 'Name', (c) => c.name),
    catalogue.number('images', 'Images', 'How many it has for this machine', (c) => c.images),
    catalogue.number('refused', 'Refused', 'Entries that were passed over', (c) => c.refused),
    catalogue.time('updated', 'Updated', 'When it was read last', (c) => c.updatedAtMs),
    catalogue.text('source', 'Source', 'Where it is read from', (c) => c.source),
  ],
};
