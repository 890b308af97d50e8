import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSeededRandom, type SeededRandom } from '../lab/seeded-random.ts';
import type { Oracle, Target } from './target.ts';

export interface CaseRange {
  readonly seed: number;
  readonly first: number;
  /** Every how manieth, for shares of several workers. */
  readonly step: number;
  readonly cases: number;
}

export interface FuzzFailure {
  /** The number of the case: with the seed it gives the input again. */
  readonly index: number;
  readonly input: Buffer;
  readonly reason: string;
}

/** Cases that warm the code up, and tell what is usual. */
const WARM_UP = 1_000;
/**
 * An input that takes this many times longer for a byte than usual, each of a few times, shows work
 * that grows faster than it.
 */
const MAX_TIME_RATIO = 200;
const TIME_ATTEMPTS = 4;
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

/** The random numbers of one case do not depend on those before it. */
function randomOf(seed: number, index: number): SeededRandom {
  return createSeededRandom((seed ^ Math.imul(index + 1, 0x9e3779b1)) >>> 0);
}

/** The input of a case, for a failure that the runner could not tell itself. */
export function inputOf(target: Target, seed: number, index: number): Buffer {
  return target.generate(randomOf(seed, index));
}

/**
 * Runs these cases and ends with the first failure.
 * @param onCase is told the number of each case before it begins
 */
export async function runCases(
  target: Target,
  range: CaseRange,
  onCase: (index: number) => void = () => undefined,
): Promise<FuzzFailure | null> {
  await using oracle = await target.open();
  using buffers = countBuffers();
  const time = new UsualTime();
  const concurrency = target.concurrency ?? 1;
  let heldAtFirst: number | null = null;
  for (let done = 0; done < range.cases; done += concurrency) {
    const batch = Array.from({ length: Math.min(concurrency, range.cases - done) }, (_, offset) => {
      const index = range.first + (done + offset) * range.step;
      return { index, input: inputOf(target, range.seed, index) };
    });
    const [{ index } = { index: 0 }] = batch;
    onCase(index);
    buffers.reset();
    const startedAtMs = performance.now();
    const outcomes = await Promise.all(batch.map(({ input }) => reasonOf(oracle, input)));
    const tookMs = performance.now() - startedAtMs;
    for (const [offset, reason] of outcomes.entries()) {
      const failed = batch[offset];
      if (reason !== null && failed) return { ...failed, reason };
    }
    const [only] = batch;
    if (concurrency === 1 && only) {
      const excess = judgeBuffers(only.input.length, buffers.bytes);
      const again = (): Promise<unknown> => reasonOf(oracle, only.input);
      const slow = await time.take(done, only.input.length, tookMs, again);
      if (excess !== null || slow !== null) return { ...only, reason: excess ?? slow ?? '' };
    }
    if (heldAtFirst === null && done >= WARM_UP) heldAtFirst = await heldBytes();
  }
  return judgeHeld(heldAtFirst, await heldBytes());
}

function judgeHeld(atFirst: number | null, held: number): FuzzFailure | null {
  if (atFirst === null || held <= atFirst * MAX_HELD_RATIO + FREE_HELD_BYTES) return null;
  const reason = `${held} bytes are held, ${atFirst} at first`;
  return { index: -1, input: Buffer.alloc(0), reason };
}

function judgeBuffers(inputBytes: number, bufferBytes: number): string | null {
  const allowed = FREE_BUFFER_BYTES + inputBytes * MAX_BUFFER_RATIO;
  return bufferBytes > allowed ? `buffers of ${bufferBytes} bytes for ${inputBytes}` : null;
}

async function reasonOf(oracle: Oracle, input: Buffer): Promise<string | null> {
  try {
    const checked = oracle.check(input);
    if (checked !== undefined) await checked;
    return null;
  } catch (error) {
    return describe(error);
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by ${describe(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

class UsualTime {
  readonly #samples: number[] = [];
  #msPerByte = 0;

  /**
   * Learns from the first ones, when the code is warm: the median, which knows nothing of
   * interruptions.
   * @returns what to say of an input that is slow each time; others have only been interrupted by
   * something
   */
  async take(
    number: number,
    bytes: number,
    ms: number,
    again: () => Promise<unknown>,
  ): Promise<string | null> {
    if (number < WARM_UP) {
      if (number >= WARM_UP / 2 && bytes <= SMALL_BYTES)
        this.#samples.push(ms / (bytes + FREE_BYTES));
      return null;
    }
    if (this.#msPerByte === 0)
      this.#msPerByte = this.#samples.sort((a, b) => a - b)[this.#samples.length >> 1] ?? Infinity;
    const usualMs = this.#msPerByte * (bytes + FREE_BYTES);
    let shortest = ms;
    for (let attempt = 1; attempt < TIME_ATTEMPTS; attempt += 1) {
      if (shortest <= usualMs * MAX_TIME_RATIO) return null;
      const startedAtMs = performance.now();
      await again();
      shortest = Math.min(shortest, performance.now() - startedAtMs);
    }
    if (shortest <= usualMs * MAX_TIME_RATIO) return null;
    return `${bytes} bytes take ${shortest.toFixed(1)} ms; ${usualMs.toFixed(3)} ms are usual`;
  }
}

interface BufferCount extends Disposable {
  readonly bytes: number;
  reset(): void;
}

/**
 * Counts what is allocated by Buffer's own functions, `Buffer.concat` included, whether it is ever
 * touched or not.
 */
function countBuffers(): BufferCount {
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
async function heldBytes(): Promise<number> {
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
