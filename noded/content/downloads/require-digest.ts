import { createHash } from 'node:crypto';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * The same bytes, if they are those of a digest: the last chunk is held back until that is certain,
 * so that nobody takes another content for whole.
 * @param sha256 in hex
 * @param shown what it is of, for people
 */
export function requireDigest(content: Readable, sha256: string, shown: string): Readable {
  const hash = createHash('sha256');
  let held: Buffer | null = null;
  const gate = new Transform({
    transform(chunk: Buffer, _encoding, callback: TransformCallback) {
      hash.update(chunk);
      const before = held;
      held = chunk;
      if (before === null) callback();
      else callback(null, before);
    },
    flush(callback: TransformCallback) {
      const actual = hash.digest('hex');
      if (actual === sha256) callback(null, held);
      else callback(packageChanged(shown, sha256, actual));
    },
  });
  // A reader that goes away ends the download, and what ends the download is the reader's to hear.
  gate.on('close', () => content.destroy());
  gate.on('error', () => undefined);
  content.on('error', (error) => gate.destroy(error));
  content.pipe(gate);
  return gate;
}

function packageChanged(shown: string, expected: string, actual: string): AppError {
  return new AppError(
    'PACKAGE_CHECKSUM_MISMATCH',
    `${shown} changed after it was checked: its sha256 is ${actual}, not ${expected}`,
    {
      details: { source: shown, algorithm: 'sha256', expected, actual },
      hint: 'The file was replaced during the installation. Repeat it.',
    },
  );
}
