import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NeighbourReport } from './neighbour.ts';

const MEMORY_EVERY_MS = 500;
const MIB = 1024 * 1024;

const NEIGHBOUR = join(import.meta.dirname, 'neighbour.ts');

/** A well-behaved guest that reads its instance id until the signal says that it is enough, in a process of its own. */
export async function watchNeighbour(
  namespace: string,
  instanceId: string,
  signal: AbortSignal,
): Promise<NeighbourReport> {
  const enter = ['netns', 'exec', namespace, process.execPath, NEIGHBOUR, instanceId];
  const child = spawn('ip', enter, { stdio: ['pipe', 'pipe', 'inherit'] });
  signal.addEventListener('abort', () => child.stdin.end());
  return JSON.parse(await text(child.stdout)) as NeighbourReport;
}

export interface MemoryReport {
  /** MiB: after the first third of the time, and at the end. */
  readonly early: number;
  readonly late: number;
  readonly highest: number;
  /** MiB a minute over the last two thirds, by least squares. */
  readonly slope: number;
}

/** Follows the resident memory of a process until the signal says that it is enough. */
export async function watchMemory(pid: number, signal: AbortSignal): Promise<MemoryReport> {
  const samples: { readonly minutes: number; readonly mib: number }[] = [];
  const startedAtMs = performance.now();
  do {
    const minutes = (performance.now() - startedAtMs) / 60_000;
    samples.push({ minutes, mib: await residentMib(pid) });
    await sleep(MEMORY_EVERY_MS, undefined, { signal }).catch(() => undefined);
  } while (!signal.aborted);
  const warm = samples.slice(Math.floor(samples.length / 3));
  return {
    early: median(warm.slice(0, Math.ceil(warm.length / 4)).map(({ mib }) => mib)),
    late: median(warm.slice(-Math.ceil(warm.length / 4)).map(({ mib }) => mib)),
    highest: Math.max(...samples.map(({ mib }) => mib)),
    slope: slopeOf(warm),
  };
}

/** Resident memory of a process; 0 when it is gone. */
export async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024) / MIB;
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
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
