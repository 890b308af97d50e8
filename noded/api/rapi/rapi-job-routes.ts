import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseInput } from '../http/http-errors.ts';
import type { JobService } from '../../jobs/job-service.ts';
import { fieldOf, pickFields } from './fields.ts';
import { bulkJobFields, jobFields, logEntries } from './job-fields.ts';
import { RapiFailure } from './rapi-failure.ts';
import type { Visible } from './visible.ts';
import { isSet, type RapiRequest, type RapiRoute } from './rapi-route.ts';

/** As long as Ganeti's wait; its client then repeats the request. */
const WAIT_MS = 10_000;

/** Events that a job's record does not contain. */
const UNRECORDED: ReadonlySet<JobEvent['type']> = new Set(['progress', 'output', 'script-output']);

const waitRequest = z.object({
  fields: z.array(z.string()).min(1).max(Object.keys(jobFields).length),
  previous_job_info: z.array(z.unknown()).nullish(),
  previous_log_serial: z.number().int().nullish(),
});
type WaitRequest = z.infer<typeof waitRequest>;

export interface RapiJobDependencies {
  readonly visible: Pick<Visible, 'job' | 'jobs'>;
  readonly jobs: JobService;
}

export function jobRoutes({ visible, jobs }: RapiJobDependencies): readonly RapiRoute[] {
  const find = ({ params, user }: RapiRequest): Promise<JobRecord> =>
    visible.job(user, parseJobId(params));
  return [
    {
      method: 'GET',
      path: '/2/jobs',
      role: 'read',
      handle: async ({ query, user }) => {
        const list = await visible.jobs(user);
        if (isSet(query, 'bulk'))
          return list.map((job) => pickFields(jobFields, job, bulkJobFields));
        return list.map(({ id }) => ({ id, uri: `/2/jobs/${id}` }));
      },
    },
    {
      method: 'GET',
      path: '/2/jobs/:id',
      role: 'read',
      handle: async (request) => pickFields(jobFields, await find(request)),
    },
    {
      method: 'DELETE',
      path: '/2/jobs/:id',
      role: 'write',
      handle: async (request) => cancel(jobs, (await find(request)).id),
    },
    {
      method: 'GET',
      path: '/2/jobs/:id/wait',
      // It occupies a connection.
      role: 'write',
      handle: async (request) => {
        const { body, signal } = request;
        const wanted = parseInput(waitRequest, body ?? {});
        const unknown = wanted.fields.find((name) => fieldOf(jobFields, name) === undefined);
        if (unknown !== undefined) throw new RapiFailure(400, `unknown job field '${unknown}'`);
        return waitForChange(jobs, (await find(request)).id, wanted, signal);
      },
    },
  ];
}

async function cancel(jobs: JobService, id: number): Promise<readonly [boolean, string]> {
  try {
    await jobs.cancel(id);
    return [true, `Job ${id} is being canceled`];
  } catch (error) {
    if (isAppError(error, 'CONFLICT')) return [false, error.message];
    throw error;
  }
}

/** @returns null if nothing changed in time */
async function waitForChange(
  jobs: JobService,
  id: number,
  wanted: WaitRequest,
  gone: AbortSignal,
): Promise<unknown> {
  let seen: JobRecord | undefined;
  const findChange = async (): Promise<unknown> => {
    const job = await jobs.get(id);
    // Replayed events belong to a record that was already compared.
    if (job === seen) return null;
    seen = job;
    return describeChange(job, wanted);
  };
  const atOnce = await findChange();
  if (atOnce !== null) return atOnce;
  const end = AbortSignal.any([gone, AbortSignal.timeout(WAIT_MS)]);
  for await (const event of jobs.watch(id, end)) {
    if (UNRECORDED.has(event.type)) continue;
    const change = await findChange();
    if (change !== null) return change;
  }
  return null;
}

function describeChange(job: JobRecord, wanted: WaitRequest): unknown {
  const info = wanted.fields.map((name) => fieldOf(jobFields, name)?.of(job) ?? null);
  const entries = logEntries(job, wanted.previous_log_serial ?? -1);
  const isSame =
    job.endedAtMs === null &&
    entries.length === 0 &&
    isDeepStrictEqual(toJson(info), wanted.previous_job_info);
  return isSame ? null : { job_info: info, log_entries: entries };
}

/** Returns the value as a client receives it, without fields that JSON omits. */
function toJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

function parseJobId({ id = '' }: RapiRequest['params']): number {
  if (/^[1-9]\d{0,9}$/.test(id)) return Number(id);
  throw new RapiFailure(404, `'${id}' is not a job id`);
}
