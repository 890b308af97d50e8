import { parentPort, workerData } from 'node:worker_threads';
import { runCases } from './run-cases.ts';
import type { WorkerData } from './run-fuzz.ts';
import { findTarget } from './targets/all.ts';

// What a worker is given has the type that its starter gives it.
const { target, at, ...range } = workerData as WorkerData;
const view = new BigInt64Array(at);
const failure = await runCases(findTarget(target), range, (index) => {
  Atomics.store(view, 0, BigInt(index));
});
parentPort?.postMessage(failure);
