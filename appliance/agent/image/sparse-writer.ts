import { crc32 } from 'node:zlib';
import { MIB } from '#shared/units/bytes.ts';

export const CHUNK_BYTES = MIB;
const BLOCK_BYTES = 64 * 1024;

export interface RandomWriter {
  write(bytes: Buffer, offset: number): Promise<void>;
}

/**
 * Writes the nonzero blocks of a stream at their offsets. The disk must read as zeros before. Keeps
 * a CRC-32 of each MiB, so that the disk can be verified without reading the source again.
 */
export class SparseWriter {
  readonly #disk: RandomWriter;
  readonly #buffer = Buffer.alloc(CHUNK_BYTES);
  readonly #checksums: number[] = [];
  #filled = 0;
  #offset = 0;
  #writtenBytes = 0;

  constructor(disk: RandomWriter) {
    this.#disk = disk;
  }

  get totalBytes(): number {
    return this.#offset + this.#filled;
  }

  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** CRC-32 of each chunk in order; the last may be short. */
  get checksums(): readonly number[] {
    return this.#checksums;
  }

  async push(bytes: Buffer): Promise<void> {
    let taken = 0;
    while (taken < bytes.length) {
      const copied = bytes.copy(this.#buffer, this.#filled, taken);
      taken += copied;
      this.#filled += copied;
      if (this.#filled === CHUNK_BYTES) await this.#writeChunk();
    }
  }

  async end(): Promise<void> {
    if (this.#filled > 0) await this.#writeChunk();
  }

  async #writeChunk(): Promise<void> {
    const chunk = this.#buffer.subarray(0, this.#filled);
    this.#checksums.push(crc32(chunk));
    for (const run of findNonZeroRuns(chunk)) {
      await this.#disk.write(chunk.subarray(run.start, run.end), this.#offset + run.start);
      this.#writtenBytes += run.end - run.start;
    }
    this.#offset += this.#filled;
    this.#filled = 0;
  }
}

export interface Run {
  readonly start: number;
  readonly end: number;
}

const zeros = Buffer.alloc(BLOCK_BYTES);

/** Finds nonzero runs, in multiples of 64 KiB (the last may be short). */
export function findNonZeroRuns(chunk: Buffer): Run[] {
  const runs: { start: number; end: number }[] = [];
  for (let start = 0; start < chunk.length; start += BLOCK_BYTES) {
    const end = Math.min(start + BLOCK_BYTES, chunk.length);
    if (zeros.compare(chunk, start, end, 0, end - start) === 0) continue;
    const last = runs.at(-1);
    if (last?.end === start) last.end = end;
    else runs.push({ start, end });
  }
  return runs;
}
