/**
 * Milliseconds that this thread works for `work`, which other programs on a busy machine do not
 * change; waiting is none.
 */
export function threadMs(work: () => unknown): number {
  const before = readThreadMs();
  work();
  return readThreadMs() - before;
}

/** Milliseconds that a thread works. */
export interface Stretches {
  readonly allMs: number;
  readonly longestMs: number;
}

const MAX_RUNS = 5;

/**
 * How long this thread works while `work` runs, and for how long of it at a stretch nothing else
 * gets its turn. Repeated until it is fine: where this is a virtual machine, its host may hold a
 * processor up for a fifth of a second, which the kernel counts as the thread's. What gives nobody
 * a turn does so each time.
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

/** The kernel counts a thread that runs some milliseconds late, unless its process is asked for. */
function readThreadMs(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
