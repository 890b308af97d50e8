/**
 * Starts work after every interval, unless its last run still lasts. Does not keep the process
 * running. Disposing of the result stops it.
 * @param work handles its errors itself
 */
export function every(
  intervalMs: number,
  work: () => Promise<void> | void,
  { startsNow = false }: { readonly startsNow?: boolean } = {},
): Disposable {
  let running: Promise<void> | undefined;
  const run = (): void => {
    running ??= Promise.resolve(work()).finally(() => (running = undefined));
  };
  if (startsNow) run();
  const timer = setInterval(run, intervalMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
