import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Cases that warm the code up, and tell what is usual. */
export const WARM_UP = 1_000;
/**
 * An input that takes this many times longer for a byte than usual, each of a few times, shows work
 * that grows faster than it.
 */
const MAX_TIME_RATIO = 200;
const TIME_ATTEMPTS = 3;
/** The usual is taken from these: what grows too fast shows in the larger ones. */
const SMALL_BYTES = 4_096;
/** A call costs something whatever its input is. */
const FREE_BYTES = 512;
/**
 * Bytes of buffers for a byte of input, and for none: a length that the input tells must not be
 * believed.
 */
const MAX_BUFFER_RATIO = 256;
const FREE_BUFFER_BYTES = 1024 * 1024;
/** What is held after all cases, against what was held after the first of them. */
const MAX_HELD_RATIO = 1.5;
const FREE_HELD_BYTES = 16 * 1024 * 1024;

/** @returns what to say of what is still in use after all cases */
export function judgeHeld(atFirst: number, held: number): string | null {
  if (held <= atFirst * MAX_HELD_RATIO + FREE_HELD_BYTES) return null;
  return `${held} bytes are held, ${atFirst} at first`;
}

/** @returns what to say of a case that allocated more than its input explains */
export function judgeBuffers(inputBytes: number, bufferBytes: number): string | null {
  const allowed = FREE_BUFFER_BYTES + inputBytes * MAX_BUFFER_RATIO;
  return bufferBytes > allowed ? `buffers of ${bufferBytes} bytes for ${inputBytes}` : null;
}

/**
 * Learns what is usual from the first cases, when the code is warm: the median, which knows nothing
 * of interruptions.
 */
export class UsualTime {
  readonly #samples: number[] = [];
  #msPerByte = 0;

  /**
   * @param number how many cases went before
   * @returns milliseconds of this input that are too many; nothing is, before it is known what is
   * usual
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
 * @param again runs a case that took too long once more: now what its thread works is counted,
 * which other programs do not change
 * @returns what to say of an input that is slow each time
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
 * Counts what is allocated by Buffer's own functions, `Buffer.concat` included, whether it is ever
 * touched or not.
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
    // The overloads differ in what they fill it with only.
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

/** What is in use; what the process has taken from the system besides is the collector's affair. */
export async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Memory of buffers is given back by the collection after the one that finds them.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
