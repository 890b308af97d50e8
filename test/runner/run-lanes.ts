/** Jobs that run one after the other in each of `workers`. */
export interface Lane<T> {
  readonly jobs: readonly (() => Promise<T>)[];
  readonly workers: number;
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
  const drain = async (queue: (() => Promise<T>)[]): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      if (signal.aborted) leftOut += 1;
      else tell(await job());
    }
  };
  await Promise.all(
    lanes.flatMap(({ jobs, workers }) => {
      const queue = [...jobs];
      return Array.from({ length: workers }, () => drain(queue));
    }),
  );
  return leftOut;
}
