import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { BATCH_BYTES, BLOCK_BYTES, BLOCK_HEAD_BYTES } from '#shared/contract/move.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { findData } from '#shared/sys/files.ts';
import { GIB } from '#shared/units/bytes.ts';

const ZEROS = Buffer.alloc(BLOCK_BYTES);
/** After this many bytes of zeros, an empty message shows that the reading continues. */
const SILENT_BYTES = GIB;
/** Limits the blocks of one message: each costs a write, however small the sender made it. */
const MAX_BLOCKS = 64;

/** A run of bytes of a file that are not all zeros. */
interface Block {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Blocks of a file as one message, which may be empty. */
export interface Batch {
  readonly message: Buffer;
  /** Bytes read since the last batch, zeros included. Holes are not read. */
  readonly readBytes: number;
}

/**
 * Reads all data of a file in order, without holes and blocks of zeros. Digests of these messages
 * are equal if size and bytes are equal, wherever the files have holes.
 */
export async function* readBatches(file: FileHandle, signal: AbortSignal): AsyncGenerator<Batch> {
  let parts: Buffer[] = [];
  let lengthBytes = 0;
  let readBytes = 0;
  const flush = (): Batch => {
    const batch = { message: Buffer.concat(parts), readBytes };
    parts = [];
    lengthBytes = 0;
    readBytes = 0;
    return batch;
  };
  const { size } = await file.stat();
  for (let at = 0; at < size;) {
    const data = findData(file.fd, at);
    if (data === null) break;
    at = Math.max(at, data.start - (data.start % BLOCK_BYTES));
    for (; at < Math.min(data.end, size); at += BLOCK_BYTES) {
      signal.throwIfAborted();
      const bytes = await readAt(file, at, Math.min(BLOCK_BYTES, size - at));
      readBytes += bytes.length;
      if (!bytes.equals(ZEROS.subarray(0, bytes.length))) {
        parts.push(headOf({ offset: at, bytes }), bytes);
        lengthBytes += bytes.length;
      }
      if (lengthBytes >= BATCH_BYTES || readBytes >= SILENT_BYTES) yield flush();
    }
  }
  if (readBytes > 0) yield flush();
}

/**
 * Returns the digest of a file's size and bytes.
 * @see readBatches
 */
export async function digestFile(file: FileHandle, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const { message } of readBatches(file, signal)) hash.update(message);
  return finishDigest(hash, (await file.stat()).size);
}

/** Returns the digest of a file whose messages the hash received. */
export function finishDigest(hash: ReturnType<typeof createHash>, sizeBytes: number): string {
  return hash.update(`${sizeBytes}`).digest('hex');
}

/**
 * Writes the blocks of a message in place. Idempotent.
 * @param sizeBytes of the file, which does not grow
 * @throws AppError VALIDATION
 */
export async function writeBatch(
  file: FileHandle,
  message: Buffer,
  sizeBytes: number,
): Promise<void> {
  for (const { offset, bytes } of parseBatch(message, sizeBytes)) {
    for (let done = 0; done < bytes.length;) {
      const left = bytes.length - done;
      done += (await file.write(bytes, done, left, offset + done)).bytesWritten;
    }
  }
}

/** Checks the complete message before any of it is written. */
function parseBatch(message: Buffer, sizeBytes: number): readonly Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < message.length;) {
    if (message.length - at < BLOCK_HEAD_BYTES || blocks.length >= MAX_BLOCKS) throw malformed();
    const offset = Number(message.readBigUInt64BE(at));
    const length = message.readUInt32BE(at + 8);
    const bytes = message.subarray(at + BLOCK_HEAD_BYTES, at + BLOCK_HEAD_BYTES + length);
    if (bytes.length !== length || length === 0) throw malformed();
    if (!Number.isSafeInteger(offset) || offset + length > sizeBytes) throw malformed();
    blocks.push({ offset, bytes });
    at += BLOCK_HEAD_BYTES + length;
  }
  return blocks;
}

function headOf({ offset, bytes }: Block): Buffer {
  const head = Buffer.alloc(BLOCK_HEAD_BYTES);
  head.writeBigUInt64BE(BigInt(offset));
  head.writeUInt32BE(bytes.length, 8);
  return head;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw new Error('the disk shrank while it was read');
    done += bytesRead;
  }
  return bytes;
}

function malformed(): AppError {
  return new AppError('VALIDATION', 'the block list does not fit this file');
}
