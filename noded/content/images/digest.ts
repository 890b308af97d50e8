import { createHash } from 'node:crypto';
import { imageChecksum } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readImageBytes, type SizedFile } from './image-bytes.ts';

export type DigestAlgorithm = 'sha256' | 'sha512';

export interface Checksum {
  readonly algorithm: DigestAlgorithm;
  readonly hex: string;
}

/** @throws AppError IMAGE_SOURCE for anything but `sha256:HEX` or `sha512:HEX` */
export function parseChecksum(text: string): Checksum {
  if (!imageChecksum.safeParse(text).success) {
    throw new AppError('IMAGE_SOURCE', `'${text.slice(0, 160)}' is not a checksum`, {
      hint: 'Write sha256:HEX or sha512:HEX, in lower case.',
    });
  }
  const [algorithm, hex = ''] = text.split(':');
  return { algorithm: algorithm === 'sha512' ? 'sha512' : 'sha256', hex };
}

export interface DigestOptions {
  readonly signal?: AbortSignal;
  readonly onBytes?: (doneBytes: number) => void;
}

/**
 * Returns the hex digest of a file. @throws AppError IMAGE_UNREADABLE when the file became shorter
 */
export async function digestFile(
  file: SizedFile,
  algorithm: DigestAlgorithm,
  { signal, onBytes }: DigestOptions = {},
): Promise<string> {
  const hash = createHash(algorithm);
  let doneBytes = 0;
  for await (const chunk of readImageBytes(file, signal)) {
    hash.update(chunk);
    doneBytes += chunk.length;
    onBytes?.(doneBytes);
  }
  return hash.digest('hex');
}

export function checksumMismatch(source: string, expected: Checksum, actual: string): AppError {
  return new AppError(
    'IMAGE_CHECKSUM_MISMATCH',
    `the ${expected.algorithm} of ${source} is ${actual}, expected ${expected.hex}`,
    {
      details: { source, algorithm: expected.algorithm, expected: expected.hex, actual },
      hint: "Compare it with the publisher's checksum. The image may have been replaced or damaged.",
    },
  );
}
