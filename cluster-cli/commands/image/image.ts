import { isAbsolute, resolve } from 'node:path';
import {
  type CatalogueInfo,
  type ImageInfo,
  IMPORTED,
  type ImportImage,
} from '#shared/contract/image-catalogue.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { NodeClient } from '../../client/node-client.ts';
import {
  catalogueFields,
  imageFields,
  referenceOf,
  VERIFIED_BY,
} from '../../fields/image-fields.ts';
import { formatBytes } from '../../render/format.ts';
import { renderOutline } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { parseSizeBytes } from '../../values/size.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

export interface ImportOptions {
  readonly name: string;
  readonly checksum?: string;
  readonly user?: string;
  readonly minDisk?: string;
  readonly title?: string;
  readonly imageFormat?: ImportImage['format'];
}

export async function runImageList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const items = await client.ask('GET /v1/images');
  printList(
    context,
    {
      ...{ table: imageFields, items, names, nameOf: referenceOf, defaultSort: 'name' },
      notFound,
    },
    options,
  );
}

export function runImageListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, imageFields, options);
}

export async function runCatalogues(context: Context, options: ListOptions): Promise<void> {
  const client = await context.client();
  printList(
    context,
    {
      ...{ table: catalogueFields, items: await client.ask('GET /v1/catalogues'), names: [] },
      ...{ nameOf: ({ name }: CatalogueInfo) => name, defaultSort: 'name', notFound },
    },
    options,
  );
}

/** @throws AppError IMAGE_NOT_FOUND */
export async function runImageInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const all = await client.ask('GET /v1/images');
  const found = names.map((name) => find(name, all));
  if (options.json) {
    context.print(JSON.stringify(found, null, 2));
    return;
  }
  for (const image of found) {
    const lines = renderOutline([
      { key: 'Image', value: referenceOf(image) },
      { key: 'Other names', value: image.aliases.join(', ') || 'none' },
      { key: 'Catalogue', value: image.catalogue },
      { key: 'Title', value: image.title || null },
      { key: 'Source', value: image.source },
      { key: 'Format', value: image.format === 'auto' ? 'by content' : image.format },
      { key: 'Login user', value: image.user ?? 'not known' },
      {
        key: 'Minimum disk',
        value: image.minDiskBytes === null ? 'not known' : formatBytes(image.minDiskBytes),
      },
      { key: 'cloud-init', value: image.cloudInit ?? 'not known' },
      { key: 'Checksum', value: image.checksum ?? 'not read yet' },
      { key: 'Published in', value: image.checksums },
      { key: 'Verified by', value: VERIFIED_BY[image.verified] },
      { key: 'Cached', value: image.isCached },
    ]);
    context.print(lines.join('\n'));
  }
}

function find(reference: string, all: readonly ImageInfo[]): ImageInfo {
  const at = reference.indexOf(':');
  const name = reference.slice(at + 1);
  const within = all.filter((each) => at === -1 || each.catalogue === reference.slice(0, at));
  const found =
    within.find((each) => each.name === name) ??
    within.find(({ aliases }) => aliases.includes(name));
  if (found === undefined) throw notFound(reference);
  return found;
}

function notFound(name: string): AppError {
  return new AppError('IMAGE_NOT_FOUND', `image '${name}' does not exist`, {
    hint: 'gnt-image list shows the images',
  });
}

export async function runCatalogueAdd(
  context: Context,
  name: string,
  source: string,
): Promise<void> {
  const client = await context.client();
  await client.ask('POST /v1/catalogues', { body: { name, source: absolute(source) } });
  await tell(context, client, [name]);
}

export async function runCatalogueUpdate(
  context: Context,
  names: readonly string[],
): Promise<void> {
  const client = await context.client();
  await client.ask('POST /v1/catalogues/update', { body: { names: [...names] } });
  await tell(context, client, names);
}

async function tell(context: Context, client: NodeClient, names: readonly string[]): Promise<void> {
  const all = await client.ask('GET /v1/catalogues');
  const meant = all.filter(
    ({ name, updatedAtMs }) => updatedAtMs !== null && (names.length === 0 || names.includes(name)),
  );
  if (meant.length === 0)
    context.note('no added catalogue; the built-in catalogue needs no update');
  for (const { name, images, refused } of meant) {
    context.note(
      `catalogue ${name}: ${images} image${images === 1 ? '' : 's'} for the architecture of this node`,
    );
    if (refused > 0)
      context.warn(
        `catalogue ${name}: ${refused} entries skipped: an entry needs a name, a permitted URL and a checksum`,
      );
  }
}

export async function runImageImport(
  context: Context,
  file: string,
  { name, checksum, user, minDisk, title, imageFormat }: ImportOptions,
): Promise<void> {
  const client = await context.client();
  await client.ask('POST /v1/images/import', {
    body: {
      ...{ name, path: absolute(file), user, title, format: imageFormat },
      ...(checksum !== undefined && { checksum: checksum.toLowerCase() }),
      ...(minDisk !== undefined && { minDiskBytes: parseSizeBytes('--min-disk', minDisk) }),
    },
  });
  context.note(`image ${name} is imported`);
}

export async function runImageRemove(
  context: Context,
  name: string,
  options: ForceOptions,
): Promise<void> {
  const client = await context.client();
  const users = await usersOf(client, name);
  const told = users.length === 0 ? '' : ` Its file stays for ${users.join(', ')}.`;
  await confirmLoss(context, `This removes ${name} and what was imported as it.${told}`, options);
  await client.ask('POST /v1/images/remove', { body: { name } });
  if (users.length > 0)
    context.note(`the file of ${name} stays for the next installation of ${users.join(', ')}`);
  context.note(`${name} removed`);
}

/** Returns the instances whose image is the imported file of a name. */
async function usersOf(client: NodeClient, name: string): Promise<string[]> {
  const imported = (await client.ask('GET /v1/images')).find(
    (each) => each.name === name && each.catalogue === IMPORTED,
  );
  if (imported === undefined) return [];
  const all = await client.instances();
  return all.flatMap((each) => (each.osImage === imported.source ? [each.name] : []));
}

/** Resolves a file at the working directory, because the daemon has another one. */
function absolute(source: string): string {
  return isAbsolute(source) || /^[a-z]+:\/\//i.test(source) ? source : resolve(source);
}
