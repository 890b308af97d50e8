import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { extractTar, type ExtractResult } from './extract.ts';
import { TarGate } from './tar-gate.ts';

const CHUNK_BYTES = 256 * 1024;

/**
 * Streams a `.tar.gz` into a directory; nothing of it is stored elsewhere.
 * @throws AppError PACKAGE_INVALID when it is not gzip or not tar, PACKAGE_DOWNLOAD when the stream
 * breaks off, and what `extractTar` throws
 */
export async function overlayPackage(
  input: Readable,
  rootPath: string,
  log?: (line: string) => void,
): Promise<ExtractResult> {
  return unzip(input, (archive) => extractTar(archive, rootPath, log));
}

/**
 * Reads a package to its end and unpacks nothing.
 * @throws AppError what `overlayPackage` throws for the package's own faults
 */
export async function examinePackage(input: Readable): Promise<ExtractResult> {
  return unzip(input, async (archive) => {
    const gate = new TarGate();
    for await (const chunk of archive) gate.push(chunk);
    gate.end();
    return gate.passed;
  });
}

async function unzip(
  input: Readable,
  use: (archive: AsyncIterable<Buffer>) => Promise<ExtractResult>,
): Promise<ExtractResult> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // Which of the two failed decides what is said: the download, or the bytes.
  let inputError: unknown = null;
  input.on('error', (error) => {
    inputError = error;
    gunzip.destroy(error);
  });
  input.on('close', () => {
    if (!input.readableEnded && !gunzip.destroyed)
      gunzip.destroy(new Error('the connection was lost'));
    if (!input.readableEnded) inputError ??= new Error('the connection was lost');
  });
  input.pipe(gunzip);
  try {
    // Without an encoding the chunks are Buffers.
    const result = await use(gunzip as AsyncIterable<Buffer>);
    // What comes behind the compressed bytes is read all the same: that the package is another one
    // than was checked, its sender can only say at its end.
    input.unpipe(gunzip).resume();
    await finished(input);
    return result;
  } catch (error) {
    if (inputError !== null)
      throw new AppError(
        'PACKAGE_DOWNLOAD',
        `the personalization package was interrupted: ${messageOf(inputError)}`,
        { cause: inputError },
      );
    if (isAppError(error)) throw error;
    if (isZlibError(error))
      throw new AppError(
        'PACKAGE_INVALID',
        `personalization package: not a usable gzip file: ${messageOf(error)}`,
        {
          cause: error,
          hint: 'Create it with: tar -C DIR -czf x.tar.gz .',
        },
      );
    throw error;
  } finally {
    input.destroy();
    gunzip.destroy();
  }
}

function isZlibError(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    error.code.startsWith('Z_')
  );
}

/** Unpacks an uncompressed archive that is in memory. */
export async function unpackTar(bytes: Buffer, rootPath: string): Promise<ExtractResult> {
  async function* once(): AsyncGenerator<Buffer> {
    yield bytes;
  }
  return await extractTar(once(), rootPath);
}
