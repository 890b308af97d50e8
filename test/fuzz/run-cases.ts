import { setImmediate as turn } from 'node:timers/promises';
import { createSeededRandom, type SeededRandom } from '../lab/seeded-random.ts';
import {
  countBuffers,
  heldBytes,
  judgeBuffers,
  judgeHeld,
  judgeTime,
  UsualTime,
  WARM_UP,
} from './excess.ts';
import type { Oracle, Target } from './target.ts';

export interface CaseRange {
  readonly seed: number;
  readonly first: number;
  /** Number of workers that share the cases: each takes every nth one. */
  readonly step: number;
  readonly cases: number;
}

export interface FuzzFailure {
  /**
   * Index of the case, which reproduces the input with the seed; -1 for a failure of all cases
   * together.
   */
  readonly index: number;
  readonly input: Buffer;
  readonly reason: string;
}

/** Number of cases between yields to signals and garbage collection. */
const TURN_CASES = 1_000;

/** Returns the random numbers of one case, independent of earlier cases. */
function randomOf(seed: number, index: number): SeededRandom {
  return createSeededRandom((seed ^ Math.imul(index + 1, 0x9e3779b1)) >>> 0);
}

/** Returns the input of a case, also when the worker could not report it. */
export function inputOf(target: Target, seed: number, index: number): Buffer {
  return target.generate(randomOf(seed, index));
}

/**
 * Runs these cases until the first failure.
 * @param onCase receives the index of each case before it starts
 */
export async function runCases(
  target: Target,
  range: CaseRange,
  onCase: (index: number) => void = () => undefined,
): Promise<FuzzFailure | null> {
  await using oracle = await target.open();
  const { stackTraceLimit } = Error;
  // Most inputs are refused. A stack trace costs as much as the rest of a case.
  Error.stackTraceLimit = 0;
  try {
    const run = target.concurrency === undefined ? runOneByOne : runSideBySide;
    const failure = await run(target, oracle, range, onCase);
    if (failure === null || failure.index < 0) return failure;
    Error.stackTraceLimit = stackTraceLimit;
    return { ...failure, reason: (await reasonOf(oracle, failure.input)) ?? failure.reason };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

type Runner = (
  target: Target,
  oracle: Oracle,
  range: CaseRange,
  onCase: (index: number) => void,
) => Promise<FuzzFailure | null>;

/** Runs one case at a time, to measure its time and buffers. */
const runOneByOne: Runner = async (target, oracle, range, onCase) => {
  using buffers = countBuffers();
  const time = new UsualTime();
  let heldAtFirst = 0;
  for (let number = 0; number < range.cases; number += 1) {
    const index = range.first + number * range.step;
    const input = inputOf(target, range.seed, index);
    const bytes = input.length;
    onCase(index);
    buffers.reset();
    const startedAtMs = performance.now();
    // Awaits only promises: an unneeded await costs more than some of the parsers.
    const outcome = tryCase(oracle, input);
    let reason = typeof outcome === 'object' && outcome !== null ? await outcome : outcome;
    const ms = performance.now() - startedAtMs;
    const limitMs = time.limitMs(number, bytes, ms);
    reason ??= judgeBuffers(bytes, buffers.bytes);
    if (ms > limitMs) reason ??= await judgeTime(bytes, limitMs, () => tryCase(oracle, input));
    if (reason !== null) return { index, input, reason };
    if (number === WARM_UP) heldAtFirst = await heldBytes();
    if (number % TURN_CASES === 0) await turn();
  }
  return range.cases > WARM_UP ? failureOfAll(judgeHeld(heldAtFirst, await heldBytes())) : null;
};

/** Runs cases concurrently, for targets that mostly wait. */
const runSideBySide: Runner = async (target, oracle, range, onCase) => {
  let number = 0;
  let heldAtFirst: number | null = null;
  let failure: FuzzFailure | null = null;
  const runNext = async (): Promise<void> => {
    while (number < range.cases && failure === null) {
      const index = range.first + number * range.step;
      if ((number += 1) > WARM_UP && heldAtFirst === null) {
        heldAtFirst = 0;
        heldAtFirst = await heldBytes();
      }
      const input = inputOf(target, range.seed, index);
      onCase(index);
      const reason = await reasonOf(oracle, input);
      if (reason !== null) failure ??= { index, input, reason };
    }
  };
  await Promise.all(Array.from({ length: target.concurrency ?? 1 }, runNext));
  if (failure !== null || heldAtFirst === null) return failure;
  return failureOfAll(judgeHeld(heldAtFirst, await heldBytes()));
};

function failureOfAll(reason: string | null): FuzzFailure | null {
  return reason === null ? null : { index: -1, input: Buffer.alloc(0), reason };
}

function tryCase(oracle: Oracle, input: Buffer): string | null | Promise<string | null> {
  try {
    const checked = oracle.check(input);
    return checked === undefined ? null : checked.then(() => null, describe);
  } catch (error) {
    return describe(error);
  }
}

async function reasonOf(oracle: Oracle, input: Buffer): Promise<string | null> {
  return tryCase(oracle, input);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by ${describe(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
