import { readFile } from 'node:fs/promises';

/** One number of a benchmark. */
export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** What the same work costs elsewhere, or null when it stands for itself. */
  readonly compared_with: { readonly name: string; readonly value: number } | null;
}

/** Told of each measurement as soon as it is there. */
export type Report = (measurement: Measurement) => void;

/** A module in test/bench/groups/: its file name is the group's name. */
export interface BenchGroup {
  measure(report: Report): Promise<void>;
}

/** @param part 0.5 is the median */
export function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Of another process. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
