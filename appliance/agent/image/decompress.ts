import { spawn } from 'node:child_process';
import { createReadStream, openSync, closeSync } from 'node:fs';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Compression } from './format.ts';

const READ_BYTES = MIB;

/** Where compressed bytes come from: a file, or a disk that holds one and padding behind it. */
export interface CompressedSource {
  readonly path: string;
  /** Bytes of the file proper. */
  readonly sizeBytes: number;
  /** Told how many compressed bytes were read. Only where the decompression is ours. */
  readonly onRead?: (bytes: number) => void;
}

/**
 * Streams the decompressed bytes.
 * @throws AppError IMAGE_INVALID for a stream that is cut, damaged, or not of that kind
 */
export async function* decompress(
  source: CompressedSource,
  compression: Compression,
): AsyncGenerator<Buffer> {
  try {
    if (compression === 'gz' || compression === 'zst') yield* inProcess(source, compression);
    else yield* byProgram(source, compression === 'xz' ? 'xz' : 'bzip2');
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw invalid(compression, messageOf(error), error);
  }
}

async function* inProcess(
  source: CompressedSource,
  compression: 'gz' | 'zst',
): AsyncGenerator<Buffer> {
  const input = createReadStream(source.path, {
    end: source.sizeBytes - 1,
    highWaterMark: READ_BYTES,
  });
  const output =
    compression === 'gz'
      ? createGunzip({ chunkSize: READ_BYTES })
      : createZstdDecompress({ chunkSize: READ_BYTES });
  if (source.onRead) input.on('data', (chunk) => source.onRead?.(chunk.length));
  input.on('error', (error) => output.destroy(error));
  input.pipe(output);
  try {
    for await (const chunk of output) yield chunk as Buffer; // no encoding is set
  } finally {
    input.destroy();
    output.destroy();
  }
}

/**
 * xz and bzip2 read the disk themselves. The padding of the last sector does no harm: an .xz file
 * is a multiple of four bytes long and may be followed by zeros in multiples of four (the format's
 * stream padding); bzip2 ignores what follows the end mark.
 */
async function* byProgram(
  source: CompressedSource,
  program: 'xz' | 'bzip2',
): AsyncGenerator<Buffer> {
  const fd = openSync(source.path, 'r');
  const child = spawn(program, ['-dc'], {
    stdio: [fd, 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
  });
  closeSync(fd);
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error(`${program} has no pipes`);
  let complaint = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2000);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  ended.catch(() => undefined);
  try {
    for await (const chunk of stdout) yield chunk as Buffer; // no encoding is set
    const status = await ended;
    if (status !== 0) throw new Error(complaint.trim().split('\n').at(-1) ?? `status ${status}`);
  } finally {
    child.kill('SIGKILL');
  }
}

function invalid(compression: Compression, reason: string, cause: unknown): AppError {
  return new AppError(
    'IMAGE_INVALID',
    `the image's ${compression} stream is damaged or cut: ${reason}`,
    {
      cause,
      hint: 'fetch the image again and compare its checksum: --os-image-checksum sha256:…',
    },
  );
}
