/** One number of the metrics, without the comments. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses Prometheus's text format. Lines that it does not understand are skipped. Pure. */
export function parseMetrics(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line) => {
    const found = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line);
    if (found === null) return [];
    const [, name = '', labels = '', value = ''] = found;
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    return [
      {
        name,
        labels: Object.fromEntries(pairs.map(([, key = '', text = '']) => [key, text])),
        value: Number(value),
      },
    ];
  });
}

/** The numbers of the charts at one time. Counters only grow, except after a restart. */
export interface Reading {
  readonly atMs: number;
  readonly nodedCpuS: number;
  readonly metadCpuS: number;
  readonly requests: number;
  readonly refused: number;
  readonly openJobs: number;
  readonly failedJobs: number;
  readonly diskFreeBytes: number;
  readonly running: number;
}

/** Returns the numbers of the charts. Pure. */
export function readMetrics(text: string, atMs: number): Reading {
  const samples = parseMetrics(text);
  const sum = (name: string, isWanted: (labels: Sample['labels']) => boolean = () => true) =>
    samples
      .filter((sample) => sample.name === name && isWanted(sample.labels))
      .reduce((total, { value }) => total + value, 0);
  return {
    atMs,
    nodedCpuS: sum('gnt_noded_cpu_seconds_total'),
    metadCpuS: sum('gnt_metad_cpu_seconds_total'),
    requests: sum('gnt_metad_requests_total'),
    refused: sum('gnt_metad_refused_total'),
    openJobs: sum('gnt_jobs'),
    failedJobs: sum('gnt_jobs_ended_total', ({ status }) => status === 'error'),
    diskFreeBytes: sum('gnt_file_system_free_bytes', ({ place }) => place === 'disks'),
    running: sum('gnt_instances', ({ status }) => status === 'running'),
  };
}

/**
 * Returns the growth of a counter per second between neighbouring readings; null for the first one
 * and after a restart of the daemon. Pure.
 */
export function ratesOf(
  readings: readonly Reading[],
  counter: (reading: Reading) => number,
): readonly (number | null)[] {
  return readings.map((reading, at) => {
    const before = readings[at - 1];
    if (before === undefined || reading.atMs <= before.atMs) return null;
    const growth = counter(reading) - counter(before);
    return growth < 0 ? null : (growth * 1000) / (reading.atMs - before.atMs);
  });
}
