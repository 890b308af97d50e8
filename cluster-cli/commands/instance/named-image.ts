import { imageReference } from '#shared/contract/image-catalogue.ts';
import type { Context } from '../../terminal/context.ts';

/** What an option of an installation names as its image: a name becomes a place and its checksum. */
export interface NamedSource {
  readonly source: string;
  readonly checksum: string;
  readonly minDiskBytes: number | null;
}

/** Null for a path, a URL, and what can be no name of an image. @throws AppError IMAGE_NOT_FOUND */
export async function resolveNamed(context: Context, text: string): Promise<NamedSource | null> {
  if (!imageReference.safeParse(text).success) return null;
  const client = await context.client();
  const { name, catalogue, source, checksum, minDiskBytes, isOffline } =
    await client.resolveImage(text);
  context.note(`image ${catalogue}:${name} is ${source}`);
  if (isOffline)
    context.warn(
      `the publisher of ${name} cannot be reached: the image that is cached is used, which may not be the newest`,
    );
  return { source, checksum, minDiskBytes };
}
