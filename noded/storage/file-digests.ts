import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { BLOCK_HEAD_BYTES } from '#shared/contract/move.ts';
import { readBatches } from './data-blocks.ts';

/** Digest of the size and bytes of a file, from its messages in order (data-blocks.ts). */
export interface FileDigest {
  update(message: Buffer): void;
  finish(sizeBytes: number): string;
}

/** No digit of a plain SHA-256. */
const BLOCKS_PREFIX = 'crc32:';
const CRC_BYTES = 4;

/**
 * Creates a SHA-256 over headers and CRC-32 of all blocks. The link authenticates the bytes, so
 * that only damage by memory or disks remains to be found: file systems use 32 bits for it too.
 * It needs a third of the processor time of a SHA-256 of the bytes.
 */
export function createBlocksDigest(): FileDigest {
  const hash = createHash('sha256');
  return {
    update: (message) => {
      for (let at = 0; at < message.length;) {
        const bytesAt = at + BLOCK_HEAD_BYTES;
        const end = bytesAt + message.readUInt32BE(at + 8);
        const entry = Buffer.allocUnsafe(BLOCK_HEAD_BYTES + CRC_BYTES);
        message.copy(entry, 0, at, bytesAt);
        entry.writeUInt32BE(crc32(message.subarray(bytesAt, end)), BLOCK_HEAD_BYTES);
        hash.update(entry);
        at = end;
      }
    },
    finish: (sizeBytes) => BLOCKS_PREFIX + hash.update(`${sizeBytes}`).digest('hex'),
  };
}

/** Creates the digest of release 0.2: a SHA-256 of all messages. */
export function createMessagesDigest(): FileDigest {
  const hash = createHash('sha256');
  return {
    update: (message) => void hash.update(message),
    finish: (sizeBytes) => hash.update(`${sizeBytes}`).digest('hex'),
  };
}

/** Returns the digest of a file in the form of another one. */
export async function digestFile(
  file: FileHandle,
  other: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const digest =
    other?.startsWith(BLOCKS_PREFIX) === true ? createBlocksDigest() : createMessagesDigest();
  for await (const { message } of readBatches(file, signal)) digest.update(message);
  return digest.finish((await file.stat()).size);
}
