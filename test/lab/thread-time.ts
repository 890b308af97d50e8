/**
 * Milliseconds that this thread works for `work`, which other programs on a busy machine do not
 * change; waiting is none.
 */
export function threadMs(work: () => unknown): number {
  const before = readThreadMs();
  work();
  return readThreadMs() - before;
}

/**
 * How long this thread works while `work` runs, and for how long of it at a stretch nothing else
 * gets its turn.
 */
export async function threadStretches(
  work: () => Promise<unknown>,
): Promise<{ readonly allMs: number; readonly longestMs: number }> {
  const begunMs = readThreadMs();
  let lastMs = begunMs;
  let longestMs = 0;
  let beat: NodeJS.Immediate | undefined;
  const look = (): void => {
    const nowMs = readThreadMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    beat = setImmediate(look);
  };
  look();
  await work();
  clearImmediate(beat);
  const endedMs = readThreadMs();
  return { allMs: endedMs - begunMs, longestMs: Math.max(longestMs, endedMs - lastMs) };
}

/** The kernel counts a thread that runs some milliseconds late, unless its process is asked for. */
function readThreadMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
