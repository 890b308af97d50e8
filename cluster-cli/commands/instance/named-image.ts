import { isAbsolute, resolve } from 'node:path';
import { imageReference, type ResolvedImage } from '#shared/contract/image-catalogue.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { VERIFIED_BY } from '../../fields/image-fields.ts';
import type { Context } from '../../terminal/context.ts';

/** The image of an installation: where it is, and of a name what that says of it. */
export interface ChosenImage {
  readonly source: string;
  /** Undefined for a path and a URL: there is none but what an option says. */
  readonly checksum?: string;
  readonly minDiskBytes?: number | null;
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
    throw new AppError('IMAGE_SOURCE', `'${text}' is no name of an image, no path and no URL`, {
      hint: 'a file of here is ./NAME or a whole path; gnt-image list shows the names',
    });
  }
  const client = await context.client();
  const image = await client.resolveImage(text);
  note(context, image);
  return image;
}

function note(context: Context, image: ResolvedImage): void {
  const { name, catalogue, source, verified, isOffline } = image;
  context.note(`image ${catalogue}:${name} is ${source}, verified by ${VERIFIED_BY[verified]}`);
  if (isOffline)
    context.warn(
      `the publisher of ${name} cannot be reached: the image that is cached is used, which may not be the newest`,
    );
}
