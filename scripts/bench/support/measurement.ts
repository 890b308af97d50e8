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

/** A module in scripts/bench/: its file name is the group's name. */
export interface BenchGroup {
  measure(report: Report): Promise<void>;
}
