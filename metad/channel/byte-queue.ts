import { nextCall } from '#shared/abort/next-call.ts';
import type { QueueState } from '#shared/contract/guest-handover.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface QueueSlice {
  readonly bytes: Buffer;
  readonly nextOffset: number;
}

const INITIAL_CAPACITY = 4096;

/**
 * One direction of an instance's channel: a bounded byte stream with numbered bytes.
 *
 * INVARIANTS: at most `limitBytes` wait; the memory never exceeds twice the most that waited, and
 * none is held when nothing waits (one growing buffer, so that a million one-byte writes cost a
 * megabyte); a write is taken whole or refused; writes keep their order.
 */
export class ByteQueue {
  readonly #limitBytes: number;
  #buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Offset of the byte at #start. Earlier bytes are gone. */
  #firstOffset: number;
  #isHeld = false;
  readonly #waiters = new Set<() => void>();

  /** @param firstOffset of the first byte that is written */
  constructor(limitBytes: number, firstOffset = 0) {
    this.#limitBytes = limitBytes;
    this.#firstOffset = firstOffset;
  }

  /** Creates a queue that continues a held one. */
  static takeOver(limitBytes: number, { firstOffset, bytes }: QueueState): ByteQueue {
    const queue = new ByteQueue(limitBytes, firstOffset);
    if (queue.push(Buffer.from(bytes, 'base64'))) return queue;
    throw new AppError('VALIDATION', `the queue exceeds ${limitBytes} bytes`);
  }

  /** Whether the queue is frozen, since another metad may own it. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /**
   * Freezes the queue and wakes its waiters. @returns the state for a queue that continues this one
   */
  hold(): QueueState {
    this.#isHeld = true;
    this.#wake();
    const bytes = this.#copyFrom(this.#start).toString('base64');
    return { firstOffset: this.#firstOffset, bytes };
  }

  /** Unfreezes the queue after the guest stayed here. */
  release(): void {
    this.#isHeld = false;
  }

  /** Offset of the first waiting byte, or of the next one. */
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

  /** @returns false, and takes nothing, when the bytes do not fit or the queue is held */
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

  take(): QueueSlice {
    const bytes = this.#copyFrom(this.#start);
    this.#forget(bytes.length);
    return { bytes, nextOffset: this.#firstOffset };
  }

  /**
   * Returns the bytes from an offset on. They stay until a later call acknowledges them with a
   * higher offset. For an offset before the first waiting byte it returns all waiting bytes.
   * @returns null when the offset lies beyond the last byte written
   */
  readFrom(offset: number): QueueSlice | null {
    if (offset > this.endOffset) return null;
    this.#forget(Math.max(0, offset - this.#firstOffset));
    return { bytes: this.#copyFrom(this.#start), nextOffset: this.endOffset };
  }

  /** Returns the same bytes as `readFrom`, without an acknowledgement. */
  peek(offset = this.#firstOffset): QueueSlice | null {
    if (offset > this.endOffset) return null;
    const skip = Math.max(0, offset - this.#firstOffset);
    return { bytes: this.#copyFrom(this.#start + skip), nextOffset: this.endOffset };
  }

  hasBytesFrom(offset: number): boolean {
    return this.endOffset > Math.max(offset, this.#firstOffset);
  }

  /** Resolves at the next write, when the queue is held, or when the signal aborts. */
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
