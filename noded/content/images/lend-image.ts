import { Readable } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';
import type { HeldContent } from './content-store.ts';
import { readImageBytes } from './image-bytes.ts';
import type { ImageCache } from './image-cache.ts';

/** Contents that are sent at a time, in total and to one node. */
const MAX_SENDING = 8;
const MAX_SENDING_TO_NODE = 2;
/** The content of a reader that reads nothing cannot be evicted, so its stream ends. */
const MAX_STALL_MS = 60_000;

export interface LentImage {
  readonly stream: Readable;
  /** Bytes from the offset on. */
  readonly sizeBytes: number;
}

/** Sends cached images to other nodes. */
export class ImageLender {
  readonly #images: Pick<ImageCache, 'findHeld'>;
  readonly #maxStallMs: number;
  /** `CHECKSUM NODE` of each open stream. */
  readonly #sending = new Map<string, string>();

  constructor(images: Pick<ImageCache, 'findHeld'>, maxStallMs = MAX_STALL_MS) {
    this.#images = images;
    this.#maxStallMs = maxStallMs;
  }

  /**
   * Opens a cached image, once at a time for each node.
   * @param checksum `sha256:HEX` or `sha512:HEX`
   * @param to the node that reads it
   * @throws AppError IMAGE_SOURCE, IMAGE_NOT_FOUND; CONFLICT when too many streams are open
   */
  async lend(checksum: string, offset: number, to: string): Promise<LentImage> {
    const key = `${checksum} ${to}`;
    const ofNode = [...this.#sending.values()].filter((node) => node === to).length;
    const isFull = this.#sending.size >= MAX_SENDING || ofNode >= MAX_SENDING_TO_NODE;
    if (isFull || this.#sending.has(key)) throw busy();
    this.#sending.set(key, to);
    const end = (): boolean => this.#sending.delete(key);
    let held: HeldContent | undefined;
    try {
      held = await this.#images.findHeld(checksum);
      if (held === undefined || offset > held.sizeBytes)
        throw new AppError('IMAGE_NOT_FOUND', `this node has no image ${checksum} in its cache`);
      return { stream: this.#read(held, offset, end), sizeBytes: held.sizeBytes - offset };
    } catch (error) {
      held?.release();
      end();
      throw error;
    }
  }

  #read(held: HeldContent, offset: number, end: () => void): Readable {
    const stall = setTimeout(() => {
      stream.destroy(new Error('the other node does not read'));
    }, this.#maxStallMs);
    const stream = Readable.from(refreshed(readImageBytes(held, undefined, offset), stall));
    stream.once('close', () => {
      clearTimeout(stall);
      held.release();
      end();
    });
    // An error before the first read must not end the program.
    stream.on('error', () => undefined);
    return stream;
  }
}

/** Starts a timer again with each chunk that is read. */
async function* refreshed(
  chunks: AsyncIterable<Buffer>,
  timer: NodeJS.Timeout,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of chunks) {
    timer.refresh();
    yield chunk;
  }
}

function busy(): AppError {
  return new AppError('CONFLICT', 'this node sends too many images at the moment', {
    hint: 'Read the image from its server.',
  });
}
