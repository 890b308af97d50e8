import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NeighbourReport } from './neighbour.ts';

const MEMORY_EVERY_MS = 500;
const MIB = 1024 * 1024;

const NEIGHBOUR = join(import.meta.dirname, 'neighbour.ts');

/**
 * Runs a well-behaved guest in its own process, which reads its instance id until the signal
 * aborts.
 */
export async function watchNeighbour(
  namespace: string,
  instanceId: string,
  signal: AbortSignal,
  { everyMs = 50, isUrgent = false } = {},
): Promise<NeighbourReport> {
  const first = isUrgent ? ['chrt', '--fifo', '2'] : [];
  const read = [process.execPath, NEIGHBOUR, instanceId, `${everyMs}`];
  const child = spawn('ip', ['netns', 'exec', namespace, ...first, ...read], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  signal.addEventListener('abort', () => child.stdin.end());
  return JSON.parse(await text(child.stdout)) as NeighbourReport;
}

/**
 * Memory over time. Only the minima count, because a heap of short-lived objects fills up between
 * rare collections.
 */
export interface MemoryReport {
  /** Minimum in MiB, in the second and in the last third of the time. */
  readonly early: number;
  readonly late: number;
  readonly highest: number;
  /** MiB per minute over the last two thirds, by least squares. */
  readonly slope: number;
}

/** Observes the resident memory of a process until the signal aborts. */
export async function watchMemory(pid: number, signal: AbortSignal): Promise<MemoryReport> {
  const samples: { readonly minutes: number; readonly mib: number }[] = [];
  const startedAtMs = performance.now();
  do {
    const minutes = (performance.now() - startedAtMs) / 60_000;
    samples.push({ minutes, mib: await residentMib(pid) });
    await sleep(MEMORY_EVERY_MS, undefined, { signal }).catch(() => undefined);
  } while (!signal.aborted);
  const third = Math.floor(samples.length / 3);
  const warm = samples.slice(third);
  const least = (part: typeof samples): number => Math.min(...part.map(({ mib }) => mib));
  return {
    early: least(warm.slice(0, Math.max(1, third))),
    late: least(warm.slice(third)),
    highest: Math.max(...samples.map(({ mib }) => mib)),
    slope: slopeOf(warm),
  };
}

/** Returns the resident memory of a process; 0 after its end. */
export async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024) / MIB;
}

function slopeOf(samples: readonly { readonly minutes: number; readonly mib: number }[]): number {
  const mean = (of: (sample: (typeof samples)[number]) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const meanX = mean(({ minutes }) => minutes);
  const meanY = mean(({ mib }) => mib);
  const covariance = mean(({ minutes, mib }) => (minutes - meanX) * (mib - meanY));
  const variance = mean(({ minutes }) => (minutes - meanX) ** 2);
  return variance === 0 ? 0 : covariance / variance;
}
