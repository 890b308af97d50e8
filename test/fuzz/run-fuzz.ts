import { Worker } from 'node:worker_threads';
import { type FuzzFailure, inputOf } from './run-cases.ts';
import type { Target } from './target.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly cases: number;
  readonly workers: number;
}

/** A case takes at most a millisecond. After this time it counts as hanging. */
const HANG_MS = 30_000;
const WATCH_INTERVAL_MS = 1_000;
/** Heap of a worker: more than any case needs, and little enough for any machine. */
const MAX_HEAP_MIB = 512;
/** Stack size of a main thread. A worker's default is four times as large. */
const STACK_MIB = 1;

export interface WorkerData {
  readonly target: string;
  readonly seed: number;
  readonly first: number;
  readonly step: number;
  readonly cases: number;
  /** Index of the current case. */
  readonly at: SharedArrayBuffer;
}

/**
 * Distributes the cases of a target to workers.
 * @returns the first failure, or null
 */
export async function runFuzz(target: Target, options: FuzzOptions): Promise<FuzzFailure | null> {
  const shares = Array.from({ length: options.workers }, (_, share) =>
    runShare(target, share, options),
  );
  const failures = await Promise.all(shares);
  return failures.find((failure) => failure !== null) ?? null;
}

async function runShare(
  target: Target,
  share: number,
  { seed, cases, workers }: FuzzOptions,
): Promise<FuzzFailure | null> {
  const at = new SharedArrayBuffer(8);
  const view = new BigInt64Array(at);
  const workerData: WorkerData = {
    target: target.name,
    seed,
    first: share,
    step: workers,
    cases: Math.ceil((cases - share) / workers),
    at,
  };
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB, stackSizeMb: STACK_MIB },
  });
  const failureAt = (reason: string): FuzzFailure => {
    const index = Number(Atomics.load(view, 0));
    return { index, input: inputOf(target, seed, index), reason };
  };
  let seen = -1n;
  let seenAtMs = performance.now();
  // A worker cannot report its own endless loop or pending promise.
  const watch = setInterval(() => {
    const now = Atomics.load(view, 0);
    if (now !== seen) {
      seen = now;
      seenAtMs = performance.now();
    } else if (performance.now() - seenAtMs > HANG_MS) {
      worker.emit('error', new Error(`a case that did not end within ${HANG_MS / 1000} s`));
    }
  }, WATCH_INTERVAL_MS);
  try {
    return await new Promise<FuzzFailure | null>((resolve) => {
      worker.once('message', (failure: FuzzFailure | null) =>
        resolve(failure && { ...failure, input: Buffer.from(failure.input) }),
      );
      worker.once('error', (error) => resolve(failureAt(String(error))));
      worker.once('exit', (status) => resolve(failureAt(`the worker ended with ${status}`)));
    });
  } finally {
    clearInterval(watch);
    await worker.terminate();
  }
}
