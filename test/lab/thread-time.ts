/**
 * Returns the processor time of this thread for `work` in milliseconds, without waiting. Other
 * programs on a busy machine do not change it.
 */
export function threadMs(work: () => unknown): number {
  const before = readThreadMs();
  work();
  return readThreadMs() - before;
}

/** Processor time of a thread in milliseconds. */
export interface Stretches {
  readonly allMs: number;
  readonly longestMs: number;
}

const MAX_RUNS = 5;

/**
 * Measures this thread's processor time for `work`, and the longest stretch without a turn for
 * other tasks. Repeats until `isFine`: the host of a virtual machine may pause a processor for 0.2
 * s, which the kernel counts as the thread's time. Code without turns fails each time.
 * @returns the last of the runs
 */
export async function threadStretches(
  work: () => Promise<unknown>,
  isFine: (stretches: Stretches) => boolean = () => true,
): Promise<Stretches> {
  for (let run = 1; ; run += 1) {
    const stretches = await measureStretches(work);
    if (isFine(stretches) || run === MAX_RUNS) return stretches;
  }
}

async function measureStretches(work: () => Promise<unknown>): Promise<Stretches> {
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

/**
 * Reads the processor time. The kernel counts a running thread some milliseconds late, unless its
 * process is read first.
 */
function readThreadMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
