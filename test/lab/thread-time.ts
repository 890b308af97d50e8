/**
 * Milliseconds that this thread works for `work`, which other programs on a busy machine do not
 * change; waiting is none.
 */
export function threadMs(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
