/**
 * Milliseconds that this thread works for `work`, which other programs on a busy machine do not
 * change; waiting is none.
 */
export function threadMs(work: () => unknown): number {
  const before = readThreadMs();
  work();
  return readThreadMs() - before;
}

/** The kernel counts a thread that runs some milliseconds late, unless its process is asked for. */
function readThreadMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
