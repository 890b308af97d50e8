import { createHash } from 'node:crypto';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Passes a content through and holds its last chunk back until its digest is verified, so that
 * other content never looks complete.
 * @param sha256 in hex
 * @param shown the source, for messages
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
  // A closed reader ends the download, and an error of the download reaches the reader.
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
