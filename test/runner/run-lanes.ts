/**
 * Jobs that `workers` take one after the other; `then` is what they go on with when none is left.
 */
export interface Lane<T> {
  readonly jobs: readonly (() => Promise<T>)[];
  readonly workers: number;
  /** The lane, by its place, that the workers of this one help with at the end. */
  readonly then?: number;
}

/**
 * Runs the jobs of all lanes beside each other and tells each result as it comes. Nothing begins
 * after `signal` is aborted.
 * @returns how many jobs did not begin
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
