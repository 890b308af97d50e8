/** Above every status code of HTTP. */
const STATUSES = 600;

/**
 * Counts answers by group and status, and their durations. The arrays are made once: counting
 * allocates nothing.
 */
export class Tally {
  readonly #counts: Float64Array;
  readonly #boundsS: readonly number[];
  /** Answers by duration up to the bound of the same index; the last bucket is above all bounds. */
  readonly #buckets: Float64Array;
  #sumS = 0;

  /** @param boundsS upper bounds of the buckets in seconds, in ascending order */
  constructor(groups: number, boundsS: readonly number[]) {
    this.#counts = new Float64Array(groups * STATUSES);
    this.#boundsS = boundsS;
    this.#buckets = new Float64Array(boundsS.length + 1);
  }

  add(group: number, status: number, tookS: number): void {
    // The constructor made room for every index.
    this.#counts[group * STATUSES + status]! += 1;
    let bucket = 0;
    while (bucket < this.#boundsS.length && tookS > this.#boundsS[bucket]!) bucket++;
    this.#buckets[bucket]! += 1;
    this.#sumS += tookS;
  }

  *counts(): Generator<{
    readonly group: number;
    readonly status: number;
    readonly count: number;
  }> {
    for (const [index, count] of this.#counts.entries()) {
      if (count === 0) continue;
      yield { group: Math.floor(index / STATUSES), status: index % STATUSES, count };
    }
  }

  /** Returns a histogram in Prometheus' text format. */
  formatLatency(name: string, help: string): string {
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
    let total = 0;
    for (const [index, count] of this.#buckets.entries()) {
      total += count;
      lines.push(`${name}_bucket{le="${this.#boundsS[index] ?? '+Inf'}"} ${total}`);
    }
    lines.push(`${name}_sum ${this.#sumS}`, `${name}_count ${total}`);
    return `${lines.join('\n')}\n`;
  }
}
