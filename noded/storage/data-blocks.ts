import type { FileHandle } from 'node:fs/promises';
import {
  BATCH_BYTES,
  BLOCK_BYTES,
  BLOCK_HEAD_BYTES,
  RECORD_HEAD_BYTES,
} from '#shared/contract/move.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { findData } from '#shared/sys/files.ts';
import { GIB } from '#shared/units/bytes.ts';

const ZEROS = Buffer.alloc(BLOCK_BYTES);
/** After this many bytes of zeros, an empty message shows that the reading continues. */
const SILENT_BYTES = GIB;
/** Limits the blocks of one message: each costs a write, however small the sender made it. */
const MAX_BLOCKS = 64;

const BLOCKS = BATCH_BYTES / BLOCK_BYTES;
const SLOT_BYTES = BLOCK_HEAD_BYTES + BLOCK_BYTES;

/** A run of bytes of a file that are not all zeros. */
interface Block {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Blocks of a file as one message, which may be empty. */
export interface Batch {
  readonly message: Buffer;
  /** The message behind the header of a record. */
  readonly record: Buffer;
  /** All data before this position of the file has been read. */
  readonly position: number;
  /** Bytes read since the last batch, zeros included. Holes are not read. */
  readonly readBytes: number;
}

/**
 * Reads all data of a file in order, without holes and blocks of zeros. Digests of these messages
 * are equal if size and bytes are equal, wherever the files have holes.
 *
 * Two buffers hold the messages in turn: a message is valid until the reader asks for the second
 * one after it.
 */
export async function* readBatches(
  file: FileHandle,
  signal: AbortSignal,
  from = 0,
): AsyncGenerator<Batch> {
  let [batch, next] = [new BatchBuffer(), new BatchBuffer()];
  let readBytes = 0;
  const flush = (position: number): Batch => {
    const full = { ...batch.finish(position), position, readBytes };
    [batch, next] = [next, batch];
    batch.clear();
    readBytes = 0;
    return full;
  };
  const { size } = await file.stat();
  for (let at = from; at < size;) {
    const data = findData(file.fd, at);
    if (data === null) break;
    at = Math.max(at, data.start - (data.start % BLOCK_BYTES));
    for (const end = Math.min(data.end, size); at < end;) {
      signal.throwIfAborted();
      const length = Math.min(batch.room() * BLOCK_BYTES, roundUp(end - at), size - at);
      await batch.read(file, at, length);
      at += length;
      readBytes += length;
      if (batch.room() === 0 || readBytes >= SILENT_BYTES) yield flush(at);
    }
  }
  if (readBytes > 0) yield flush(size);
}

/** A message with space for BATCH_BYTES of data, which is read in place. */
class BatchBuffer {
  readonly #bytes = Buffer.allocUnsafeSlow(RECORD_HEAD_BYTES + BLOCKS * SLOT_BYTES);
  #length = RECORD_HEAD_BYTES;

  finish(position: number): Pick<Batch, 'message' | 'record'> {
    this.#bytes.writeUInt32BE(this.#length - RECORD_HEAD_BYTES);
    this.#bytes.writeBigUInt64BE(BigInt(position), 4);
    const record = this.#bytes.subarray(0, this.#length);
    return { record, message: record.subarray(RECORD_HEAD_BYTES) };
  }

  clear(): void {
    this.#length = RECORD_HEAD_BYTES;
  }

  /** Returns the number of blocks that fit in. */
  room(): number {
    return Math.floor((this.#bytes.length - this.#length) / SLOT_BYTES);
  }

  /** Adds the blocks of a part of the file, except those of zeros. */
  async read(file: FileHandle, position: number, length: number): Promise<void> {
    const slots: Buffer[] = [];
    for (let at = 0; at < length; at += BLOCK_BYTES) {
      const start = this.#length + slots.length * SLOT_BYTES + BLOCK_HEAD_BYTES;
      slots.push(this.#bytes.subarray(start, start + Math.min(BLOCK_BYTES, length - at)));
    }
    const { bytesRead } = await file.readv(slots, position);
    for (const [index, slot] of slots.entries()) {
      const at = index * BLOCK_BYTES;
      await fillRest(file, slot, position + at, bytesRead - at);
      if (!slot.equals(ZEROS.subarray(0, slot.length))) this.#add(position + at, slot);
    }
  }

  /** Closes the gap that blocks of zeros leave. */
  #add(offset: number, slot: Buffer): void {
    const at = this.#length;
    slot.copy(this.#bytes, at + BLOCK_HEAD_BYTES);
    this.#bytes.writeBigUInt64BE(BigInt(offset), at);
    this.#bytes.writeUInt32BE(slot.length, at + 8);
    this.#length += BLOCK_HEAD_BYTES + slot.length;
  }
}

function roundUp(length: number): number {
  return Math.ceil(length / BLOCK_BYTES) * BLOCK_BYTES;
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
  const blocks = parseBatch(message, sizeBytes);
  for (let index = 0; index < blocks.length;) {
    const run = runFrom(blocks, index);
    await writeRun(file, run);
    index += run.length;
  }
}

/** Returns the blocks that follow each other in the file. */
function runFrom(blocks: readonly Block[], first: number): readonly Block[] {
  let end = first + 1;
  for (; end < blocks.length; end += 1) {
    const [last, next] = [blocks[end - 1], blocks[end]];
    if (last === undefined || next?.offset !== last.offset + last.bytes.length) break;
  }
  return blocks.slice(first, end);
}

/** A single write may be short. */
async function writeRun(file: FileHandle, run: readonly Block[]): Promise<void> {
  const [first] = run;
  if (first === undefined) return;
  const views = run.map(({ bytes }) => bytes);
  const { bytesWritten } = await file.writev(views, first.offset);
  for (const { offset, bytes } of run) {
    const from = Math.max(0, first.offset + bytesWritten - offset);
    for (let done = from; done < bytes.length;)
      done += (await file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
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

/** A single read may be short. @param done bytes of the slot that were read; may exceed it */
async function fillRest(
  file: FileHandle,
  slot: Buffer,
  position: number,
  done: number,
): Promise<void> {
  for (let at = Math.max(0, done); at < slot.length;) {
    const { bytesRead } = await file.read(slot, at, slot.length - at, position + at);
    if (bytesRead === 0) throw new Error('the disk shrank while it was read');
    at += bytesRead;
  }
}

function malformed(): AppError {
  return new AppError('VALIDATION', 'the block list does not fit this file');
}
