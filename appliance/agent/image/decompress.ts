import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Compression } from './format.ts';
import { type ImageJail, refuseEnd } from './image-jail.ts';

const READ_BYTES = MIB;
const MAX_COMPLAINT_LENGTH = 2000;
/**
 * Memory limit of a decompressor: twice the need of `xz -9` (65 MiB), and as much as
 * `zstd --ultra -22` needs. A stream may ask for gigabytes.
 */
const MAX_MEMORY = '128MiB';
const programs: Readonly<Record<Compression, readonly string[]>> = {
  gz: ['gzip', '-dc'],
  xz: ['xz', '-dc', `--memlimit-decompress=${MAX_MEMORY}`],
  zst: ['zstd', '-dcq', `--memory=${MAX_MEMORY}`],
  bz2: ['bzip2', '-dc'],
};
/** gzip's status for trailing bytes; everything before them is decompressed. */
const GZIP_WARNING = 2;

/** A file of compressed bytes, or a disk that holds one and padding behind it. */
export interface CompressedSource {
  readonly path: string;
  readonly sizeBytes: number;
  readonly onRead?: (bytes: number) => void;
}

/**
 * Streams the decompressed bytes. The decompressor runs in the jail, and reads the file from a
 * pipe.
 * @throws AppError IMAGE_INVALID for a stream that is truncated, damaged, of another kind, or needs
 * too much memory; COMMAND_FAILED when the decompressor cannot be started
 */
export async function* decompress(
  jail: ImageJail,
  source: CompressedSource,
  compression: Compression,
): AsyncGenerator<Buffer> {
  const child = jail.start(programs[compression]);
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-MAX_COMPLAINT_LENGTH);
  });
  const ended = once(child, 'close');
  ended.catch(() => undefined);
  const input = createReadStream(source.path, {
    end: source.sizeBytes - 1,
    highWaterMark: READ_BYTES,
  });
  if (source.onRead) input.on('data', (chunk) => source.onRead?.(chunk.length));
  let readError: unknown = null;
  input.on('error', (error) => (readError = error));
  // The status of a decompressor that ends early has the reason.
  const fed = pipeline(input, child.stdin).catch(() => undefined);
  try {
    for await (const chunk of child.stdout) yield chunk as Buffer; // no encoding is set
    // The event's arguments, as documented.
    const [status, signal] = (await ended) as [number | null, NodeJS.Signals | null];
    await fed;
    refuseEnd(complaint, signal ?? undefined);
    if (readError !== null) throw invalid(compression, messageOf(readError), readError);
    if (status === 0 || (compression === 'gz' && status === GZIP_WARNING)) return;
    if (/memory/i.test(complaint)) throw tooDear(compression);
    throw invalid(compression, lastLineOf(complaint) || `status ${status}`);
  } finally {
    input.destroy();
    child.kill('SIGKILL');
  }
}

function tooDear(compression: Compression): AppError {
  return new AppError(
    'IMAGE_INVALID',
    `the image's ${compression} stream needs more than ${MAX_MEMORY} of memory to decompress`,
    { hint: 'Compress it again with a smaller window: xz -9, or zstd -19 without --long' },
  );
}

function invalid(compression: Compression, reason: string, cause?: unknown): AppError {
  return new AppError(
    'IMAGE_INVALID',
    `the image's ${compression} stream is damaged or truncated: ${reason}`,
    {
      cause,
      hint: 'Fetch the image again and compare its checksum: --os-image-checksum sha256:…',
    },
  );
}
