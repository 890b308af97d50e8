import type { FileHandle } from 'node:fs/promises';
import { MIB } from '#shared/units/bytes.ts';

/** Blocks of zeros stay holes. File systems have no smaller ones. */
const BLOCK_BYTES = 4096;
const ZEROS = Buffer.alloc(MIB);

/**
 * Writes bytes into an empty region of a file. Blocks of zeros stay holes, and runs of other blocks
 * are written at once.
 * @returns bytes written
 */
export async function writeSparse(
  file: FileHandle,
  data: Buffer,
  position: number,
): Promise<number> {
  let writtenBytes = 0;
  let from: number | null = null;
  const flush = async (to: number): Promise<void> => {
    if (from === null) return;
    await writeAll(file, data.subarray(from, to), position + from);
    writtenBytes += to - from;
    from = null;
  };
  if (isZeros(data)) return 0;
  for (let at = 0; at < data.length;) {
    // Aligned to the file's blocks, not to this chunk.
    const end = Math.min(data.length, at + BLOCK_BYTES - ((position + at) % BLOCK_BYTES));
    if (isZeros(data.subarray(at, end))) await flush(at);
    else from ??= at;
    at = end;
  }
  await flush(data.length);
  return writtenBytes;
}

function isZeros(data: Buffer): boolean {
  for (let at = 0; at < data.length; at += ZEROS.length) {
    const part = data.subarray(at, at + ZEROS.length);
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
}

/** A single write may be short. */
async function writeAll(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length;) {
    const left = data.length - done;
    done += (await file.write(data, done, left, position + done)).bytesWritten;
  }
}
