import { isAbsolute, resolve } from 'node:path';
import { imageReference, type ResolvedImage } from '#shared/contract/image-catalogue.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { VERIFIED_BY } from '../../fields/image-fields.ts';
import { formatBytes } from '../../render/format.ts';
import type { Context } from '../../terminal/context.ts';

/** The image of an installation, with the catalogue's properties if it has a name. */
export interface ChosenImage {
  readonly source: string;
  /** Undefined for a path or a URL without an option. */
  readonly checksum?: string;
  readonly minDiskBytes?: number | null;
  readonly user?: string | null;
}

/**
 * Resolves the image of an option. Its spelling alone decides its kind: a text that can be an image
 * name is one, even if a file has that name.
 * @throws AppError IMAGE_NOT_FOUND, IMAGE_SOURCE
 */
export async function chooseImage(context: Context, text: string): Promise<ChosenImage> {
  if (isAbsolute(text)) return { source: text };
  if (/^\.{1,2}\//.test(text)) return { source: resolve(text) };
  if (!imageReference.safeParse(text).success) {
    if (/^[a-z][a-z\d+.-]*:/i.test(text)) return { source: text };
    throw new AppError(
      'IMAGE_SOURCE',
      `'${text}' is neither a name of an image, nor a path, nor a URL`,
      {
        hint: 'Write ./NAME for a local file; gnt-image list shows the names of images',
      },
    );
  }
  const client = await context.client();
  const image = await client.ask('POST /v1/images/resolve', { body: { name: text } });
  note(context, image);
  return image;
}

/**
 * Refuses an image that does not fit, before any change. Otherwise the write would fail.
 * @throws AppError VALIDATION
 */
export function refuseSmallDisk(
  text: string,
  { minDiskBytes, source }: ChosenImage,
  [first]: readonly { readonly sizeBytes?: number | undefined }[] = [],
): void {
  if (first?.sizeBytes === undefined || minDiskBytes == null) return;
  if (first.sizeBytes >= minDiskBytes) return;
  const least = Math.ceil(minDiskBytes / MIB);
  throw new AppError(
    'VALIDATION',
    `${text} requires a disk of ${formatBytes(minDiskBytes)}, and the first disk has ${formatBytes(first.sizeBytes)}`,
    { hint: `Give -s ${least}M or more; the URL of the image skips this check: ${source}` },
  );
}

function note(context: Context, image: ResolvedImage): void {
  const { name, catalogue, source, verified, isOffline } = image;
  context.note(`image ${catalogue}:${name}: ${source}, verified by ${VERIFIED_BY[verified]}`);
  if (isOffline)
    context.warn(
      `the publisher of ${name} does not respond: using the cached image, which may not be the newest`,
    );
}
