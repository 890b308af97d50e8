import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Cases that warm the code up and set the usual time. */
export const WARM_UP = 1_000;
/**
 * Limit of the time per byte, relative to the usual one. An input above it in each attempt shows
 * superlinear work.
 */
const MAX_TIME_RATIO = 200;
const TIME_ATTEMPTS = 3;
/** Only inputs up to this size set the usual time. Superlinear work shows in larger ones. */
const SMALL_BYTES = 4_096;
/** Fixed cost of a call, expressed in bytes of input. */
const FREE_BYTES = 512;
/**
 * Limits for bytes of buffers: per byte of input, and fixed. A parser must not allocate a length
 * that the input claims.
 */
const MAX_BUFFER_RATIO = 256;
const FREE_BUFFER_BYTES = 1024 * 1024;
/** Limits for memory in use after all cases, relative to that after the warm-up. */
const MAX_HELD_RATIO = 1.5;
const FREE_HELD_BYTES = 16 * 1024 * 1024;

/** @returns a problem when too much memory is still in use after all cases */
export function judgeHeld(atFirst: number, held: number): string | null {
  if (held <= atFirst * MAX_HELD_RATIO + FREE_HELD_BYTES) return null;
  return `${held} bytes are held, ${atFirst} at first`;
}

/** @returns a problem when a case allocated more than its input justifies */
export function judgeBuffers(inputBytes: number, bufferBytes: number): string | null {
  const allowed = FREE_BUFFER_BYTES + inputBytes * MAX_BUFFER_RATIO;
  return bufferBytes > allowed ? `buffers of ${bufferBytes} bytes for ${inputBytes}` : null;
}

/**
 * Learns the usual time from the first cases, after the code is warm. The median ignores
 * interruptions.
 */
export class UsualTime {
  readonly #samples: number[] = [];
  #msPerByte = 0;

  /**
   * @param number index of the case
   * @returns the limit for this input in milliseconds; Infinity during the warm-up
   */
  limitMs(number: number, bytes: number, ms: number): number {
    if (number < WARM_UP) {
      if (number >= WARM_UP / 2 && bytes <= SMALL_BYTES)
        this.#samples.push(ms / (bytes + FREE_BYTES));
      return Infinity;
    }
    if (this.#msPerByte === 0)
      this.#msPerByte = this.#samples.sort((a, b) => a - b)[this.#samples.length >> 1] ?? Infinity;
    return this.#msPerByte * (bytes + FREE_BYTES) * MAX_TIME_RATIO;
  }
}

/**
 * @param again repeats a case that took too long. The repetition counts CPU time of the thread,
 * which other processes do not affect.
 * @returns a problem when the input is slow each time
 */
export async function judgeTime(
  bytes: number,
  limitMs: number,
  again: () => unknown,
): Promise<string | null> {
  let shortest = Infinity;
  for (let attempt = 0; attempt < TIME_ATTEMPTS && shortest > limitMs; attempt += 1) {
    const before = process.threadCpuUsage();
    await again();
    const { user, system } = process.threadCpuUsage(before);
    shortest = Math.min(shortest, (user + system) / 1000);
  }
  if (shortest <= limitMs) return null;
  const usualMs = limitMs / MAX_TIME_RATIO;
  return `${bytes} bytes take ${shortest.toFixed(1)} ms; ${usualMs.toFixed(3)} ms are usual`;
}

export interface BufferCount extends Disposable {
  readonly bytes: number;
  reset(): void;
}

/**
 * Counts allocations by Buffer's own functions, including `Buffer.concat`, whether the memory is
 * used or not.
 */
export function countBuffers(): BufferCount {
  const originals = {
    alloc: Buffer.alloc.bind(Buffer),
    allocUnsafe: Buffer.allocUnsafe.bind(Buffer),
    allocUnsafeSlow: Buffer.allocUnsafeSlow.bind(Buffer),
  };
  let bytes = 0;
  Buffer.alloc = (size: number, ...rest: unknown[]) => {
    bytes += size;
    // The overloads differ only in the fill value.
    return originals.alloc(size, ...(rest as []));
  };
  Buffer.allocUnsafe = (size) => {
    bytes += size;
    return originals.allocUnsafe(size);
  };
  Buffer.allocUnsafeSlow = (size) => {
    bytes += size;
    return originals.allocUnsafeSlow(size);
  };
  return {
    get bytes() {
      return bytes;
    },
    reset: () => (bytes = 0),
    [Symbol.dispose]: () => {
      Object.assign(Buffer, originals);
    },
  };
}

/** Returns the memory in use. RSS would depend on the garbage collector. */
export async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // A buffer's memory is freed one collection after its object is found unreachable.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
