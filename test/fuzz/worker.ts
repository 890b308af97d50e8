import { parentPort, workerData } from 'node:worker_threads';
import { runCases } from './run-cases.ts';
import type { WorkerData } from './run-fuzz.ts';
import { findTarget } from './targets/all.ts';

// run-fuzz.ts passes a WorkerData.
const { target, at, ...range } = workerData as WorkerData;
const view = new BigInt64Array(at);
const failure = await runCases(findTarget(target), range, (index) => {
  Atomics.store(view, 0, BigInt(index));
});
parentPort?.postMessage(failure);
