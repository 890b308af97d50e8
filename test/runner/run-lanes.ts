/** Jobs for `workers`, in order. */
export interface Lane<T> {
  readonly jobs: readonly (() => Promise<T>)[];
  readonly workers: number;
  /** Index of the lane that idle workers of this lane help. */
  readonly then?: number;
}

/**
 * Runs the jobs of all lanes in parallel, and passes each result to `tell`. Starts no job after
 * `signal` aborts.
 * @returns the number of jobs that did not start
 */
export async function runLanes<T>(
  lanes: readonly Lane<T>[],
  tell: (result: T) => void,
  signal: AbortSignal,
): Promise<number> {
  let leftOut = 0;
  const queues = lanes.map(({ jobs }) => [...jobs]);
  const drain = async (queue: (() => Promise<T>)[]): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      if (signal.aborted) leftOut += 1;
      else tell(await job());
    }
  };
  const work = async (lane: number, then: number | undefined): Promise<void> => {
    await drain(queues[lane] ?? []);
    if (then !== undefined) await drain(queues[then] ?? []);
  };
  await Promise.all(
    lanes.flatMap(({ workers, then }, lane) =>
      Array.from({ length: workers }, () => work(lane, then)),
    ),
  );
  return leftOut;
}
