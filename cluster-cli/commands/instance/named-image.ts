import { isAbsolute, resolve } from 'node:path';
import { imageReference, type ResolvedImage } from '#shared/contract/image-catalogue.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { VERIFIED_BY } from '../../fields/image-fields.ts';
import { formatBytes } from '../../render/format.ts';
import type { Context } from '../../terminal/context.ts';

/** The image of an installation: where it is, and of a name what that says of it. */
export interface ChosenImage {
  readonly source: string;
  /** Undefined for a path and a URL: they have none but what an option says. */
  readonly checksum?: string;
  readonly minDiskBytes?: number | null;
  readonly user?: string | null;
}

/**
 * What an option of an installation names as its image. Its letters alone decide what it is: what
 * can be the name of an image is one, whatever files there are where the command runs.
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
 * Refuses, before anything is changed, an image that does not fit: else that would be found out
 * when it is written.
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
