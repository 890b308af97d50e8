import { nextCall } from '#shared/abort/next-call.ts';
import type { QueueState } from '#shared/contract/guest-handover.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** Bytes of a reader, and the offset that follows them. */
export interface QueueSlice {
  readonly bytes: Buffer;
  readonly nextOffset: number;
}

const INITIAL_CAPACITY = 4096;

/**
 * One direction of an instance's channel: a bounded byte stream whose bytes are numbered.
 *
 * INVARIANTS: at most `limitBytes` wait; memory held never exceeds twice what waited at most, and
 * none is held when nothing waits (one growing buffer, so that a million one-byte writes cost a
 * megabyte); writes are whole or not at all, and keep their order.
 */
export class ByteQueue {
  readonly #limitBytes: number;
  #buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Offset of the byte at #start: everything before it is forgotten. */
  #firstOffset: number;
  #isHeld = false;
  readonly #waiters = new Set<() => void>();

  /** @param firstOffset of the first byte that is written */
  constructor(limitBytes: number, firstOffset = 0) {
    this.#limitBytes = limitBytes;
    this.#firstOffset = firstOffset;
  }

  /** A queue that goes on where another one was held. */
  static takeOver(limitBytes: number, { firstOffset, bytes }: QueueState): ByteQueue {
    const queue = new ByteQueue(limitBytes, firstOffset);
    if (queue.push(Buffer.from(bytes, 'base64'))) return queue;
    throw new AppError('VALIDATION', `the queue exceeds ${limitBytes} bytes`);
  }

  /** Nothing comes or goes: it may be another metad's by now. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** @returns what another queue goes on with; who waits is told */
  hold(): QueueState {
    this.#isHeld = true;
    this.#wake();
    const bytes = this.#copyFrom(this.#start).toString('base64');
    return { firstOffset: this.#firstOffset, bytes };
  }

  /** It stayed here. */
  release(): void {
    this.#isHeld = false;
  }

  /** Offset of the first byte that waits, or of the next one. */
  get firstOffset(): number {
    return this.#firstOffset;
  }

  get waitingBytes(): number {
    return this.#end - this.#start;
  }

  /** Offset of the next byte to be written. */
  get endOffset(): number {
    return this.#firstOffset + this.waitingBytes;
  }

  /** @returns false, and takes nothing, when the bytes do not fit, or it is held */
  push(bytes: Buffer): boolean {
    if (this.#isHeld) return false;
    if (this.waitingBytes + bytes.length > this.#limitBytes) return false;
    if (bytes.length === 0) return true;
    this.#reserve(bytes.length);
    bytes.copy(this.#buffer, this.#end);
    this.#end += bytes.length;
    this.#wake();
    return true;
  }

  /** All that waits; it is gone afterwards. */
  take(): QueueSlice {
    const bytes = this.#copyFrom(this.#start);
    this.#forget(bytes.length);
    return { bytes, nextOffset: this.#firstOffset };
  }

  /**
   * Bytes from an offset on, which stay until a later call acknowledges them with a higher offset.
   * An offset that is forgotten already gives what there is.
   * @returns null when the offset lies beyond the last byte written
   */
  readFrom(offset: number): QueueSlice | null {
    if (offset > this.endOffset) return null;
    this.#forget(Math.max(0, offset - this.#firstOffset));
    return { bytes: this.#copyFrom(this.#start), nextOffset: this.endOffset };
  }

  /** What a reader would get, without changing anything. */
  peek(offset = this.#firstOffset): QueueSlice | null {
    if (offset > this.endOffset) return null;
    const skip = Math.max(0, offset - this.#firstOffset);
    return { bytes: this.#copyFrom(this.#start + skip), nextOffset: this.endOffset };
  }

  hasBytesFrom(offset: number): boolean {
    return this.endOffset > Math.max(offset, this.#firstOffset);
  }

  /** Resolves at the next write, when it is held, or when the signal says so. */
  waitForWrite(signal: AbortSignal): Promise<void> {
    return nextCall(this.#waiters, signal);
  }

  #wake(): void {
    for (const wake of [...this.#waiters]) wake();
  }

  #copyFrom(position: number): Buffer {
    return Buffer.from(this.#buffer.subarray(position, this.#end));
  }

  #forget(count: number): void {
    this.#start += count;
    this.#firstOffset += count;
    if (this.#start < this.#end) return;
    this.#buffer = Buffer.alloc(0);
    this.#start = 0;
    this.#end = 0;
  }

  #reserve(count: number): void {
    if (this.#end + count <= this.#buffer.length) return;
    const needed = this.waitingBytes + count;
    const waiting = this.#buffer.subarray(this.#start, this.#end);
    if (needed > this.#buffer.length / 2) {
      const doubled = Math.max(INITIAL_CAPACITY, this.#buffer.length * 2, needed);
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(doubled, this.#limitBytes)));
      waiting.copy(grown);
      this.#buffer = grown;
    } else {
      waiting.copy(this.#buffer);
    }
    this.#end -= this.#start;
    this.#start = 0;
  }
}
