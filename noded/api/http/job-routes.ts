import { Readable } from 'node:stream';
import type { jobEndpoints } from '#shared/contract/endpoints.ts';
import type { JobEvent } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobService } from '../../jobs/job-service.ts';
import { namesInstance } from '../../jobs/opcode-traits.ts';
import { type Handlers, Reply } from './handlers.ts';
import { notForPeers } from './http-errors.ts';
import { withWholeName, type WholeNamesDependencies } from './whole-names.ts';

export interface JobRoutesDependencies extends WholeNamesDependencies {
  readonly jobs: JobService;
}

export function jobRoutes(dependencies: JobRoutesDependencies): Handlers<typeof jobEndpoints> {
  const { jobs } = dependencies;
  return {
    'POST /v1/jobs': async ({ query, body, from, signal }) => {
      if (from !== undefined && !namesInstance(body)) throw notForPeers(body.opcode);
      const meant = query.submitter === undefined ? await withWholeName(body, dependencies) : body;
      if (query['dry-run'] === '1') {
        const preview = await jobs.dryRun(meant, signal);
        return { ok: true, ...preview };
      }
      const id = await jobs.submit(meant, {
        isDryRun: query['dry-run'] === 'job',
        submitter: query.submitter,
        placement: query.placement,
      });
      return new Reply(202, { id });
    },
    'GET /v1/jobs': async () => (await jobs.list()).map((job) => ({ ...job, log: [] })),
    'GET /v1/jobs/{id}': ({ params }) => jobs.get(parseJobId(params.id)),
    'DELETE /v1/jobs/{id}': async ({ params }) => {
      await jobs.cancel(parseJobId(params.id));
      return new Reply(202, {});
    },
    'GET /v1/jobs/{id}/events': async ({ params, signal }) => {
      const id = parseJobId(params.id);
      await jobs.get(id);
      const events = jobs.watch(id, signal);
      // Before the first event a failure can still be sent as a refusal.
      const first = await events.next();
      return Readable.from(encodeLines(first.done === true ? [] : [first.value], events));
    },
  };
}

async function* encodeLines(
  first: readonly JobEvent[],
  rest: AsyncIterable<JobEvent>,
): AsyncGenerator<string> {
  for (const event of first) yield `${JSON.stringify(event)}\n`;
  for await (const event of rest) yield `${JSON.stringify(event)}\n`;
}

/** @throws AppError JOB_NOT_FOUND */
export function parseJobId(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) {
    throw new AppError('JOB_NOT_FOUND', `'${text}' is not a job id`, {
      hint: 'List the jobs: gnt-job list',
    });
  }
  return Number(text);
}
