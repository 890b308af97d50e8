import type { JobRecord } from '#shared/contract/job.ts';

export const NOW_MS = Date.UTC(2026, 10, 21, 8, 0, 0);

/** Returns a running job, received at NOW_MS, with some fields replaced. */
export function sampleJob(fields: Partial<JobRecord> = {}): JobRecord {
  return {
    id: 1,
    status: 'running',
    opcode: 'INSTANCE_CREATE',
    summary: 'INSTANCE_CREATE(web1)',
    input: {},
    instance: 'web1',
    waitsFor: [],
    receivedAtMs: NOW_MS,
    startedAtMs: NOW_MS,
    endedAtMs: null,
    log: [],
    result: null,
    error: null,
    ...fields,
  };
}
