import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { extractTar, type ExtractResult } from './extract.ts';
import { TarGate } from './tar-gate.ts';

const CHUNK_BYTES = 256 * 1024;

/**
 * Unpacks a `.tar.gz` stream into a directory, without storing it elsewhere.
 * @throws AppError PACKAGE_INVALID for anything but gzip and tar, PACKAGE_DOWNLOAD when the stream
 * ends early, and errors of `extractTar`
 */
export async function overlayPackage(
  input: Readable,
  rootPath: string,
  log?: (line: string) => void,
): Promise<ExtractResult> {
  return unzip(input, (archive) => extractTar(archive, rootPath, log));
}

/**
 * Checks a whole package without unpacking it.
 * @throws AppError as `overlayPackage` for faults of the package itself
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
  // The first failure determines the message: the download, or the bytes.
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
    // Reads past the compressed data: the sender reports a changed package only at its end.
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

export async function unpackTar(bytes: Buffer, rootPath: string): Promise<ExtractResult> {
  async function* once(): AsyncGenerator<Buffer> {
    yield bytes;
  }
  return await extractTar(once(), rootPath);
}
