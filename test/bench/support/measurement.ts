import { readFile } from 'node:fs/promises';

/** One result of a benchmark. */
export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The same work elsewhere; null without a comparison. */
  readonly compared_with: Comparison | null;
}

export interface Comparison {
  readonly name: string;
  readonly value: number;
  /** Ratio of slices that ran one right after the other; without it, that of both values. */
  readonly ratio?: Spread;
}

/** Median and quartiles. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Receives each measurement as soon as it is complete. */
export type Report = (measurement: Measurement) => void;

/** A module in test/bench/groups/. Its file name is the name of the group. */
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

export function spreadOf(values: readonly number[]): Spread {
  return {
    median: median(values),
    low: percentile(values, 0.25),
    high: percentile(values, 0.75),
  };
}

/** Returns the resident memory of a process. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
}

/** Returns the resident memory that no file backs: other processes share none of it. */
export async function privateBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
