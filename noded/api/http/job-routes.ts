import { Readable } from 'node:stream';
import { z } from 'zod';
import { dryRunAccepted, jobSubmitted } from '#shared/contract/api.ts';
import {
  MAX_PLACEMENT_CHARACTERS,
  MAX_PLACEMENT_LINES,
  placementLines,
} from '#shared/contract/host-room.ts';
import { jobRecord, type JobEvent } from '#shared/contract/job.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { submitter } from '#shared/contract/submitter.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobService } from '../../jobs/job-service.ts';
import { question, route, type AnyApiRoute } from './api-route.ts';
import { withWholeName, type WholeNamesDependencies } from './whole-names.ts';

/** A Submitter in JSON. Who may use this socket may do everything: it only takes rights away. */
const forwardedSubmitter = z
  .string()
  .max(65_536)
  .transform((text, context) => {
    const parsed = submitter.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    context.addIssue({ code: 'custom', message: 'expected a Submitter as JSON' });
    return z.NEVER;
  })
  .pipe(submitter)
  .describe('user on whose behalf another node asks, as JSON');

const forwardedPlacement = z
  .string()
  .max(4 * MAX_PLACEMENT_LINES * MAX_PLACEMENT_CHARACTERS)
  .transform((text, context) => {
    const parsed = placementLines.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    context.addIssue({ code: 'custom', message: 'expected a list of lines as JSON' });
    return z.NEVER;
  })
  .pipe(placementLines)
  .describe('why another node chose this one for a new instance, as JSON');

export interface JobRoutesDependencies extends WholeNamesDependencies {
  readonly jobs: JobService;
}

export function jobRoutes(dependencies: JobRoutesDependencies): readonly AnyApiRoute[] {
  const { jobs } = dependencies;
  return [
    route({
      method: 'POST',
      path: '/v1/jobs',
      summary: 'Submits an operation as a job',
      query: z.object({
        'dry-run': z
          .enum(['1', 'job'], { error: 'expected 1 or job' })
          .describe('1: check only, with status 200; job: check as a job')
          .optional(),
        submitter: forwardedSubmitter.optional(),
        placement: forwardedPlacement.optional(),
      }),
      request: opcode,
      answers: { 200: dryRunAccepted, 202: jobSubmitted },
      handle: async ({ query, body, signal }) => {
        const meant =
          query.submitter === undefined ? await withWholeName(body, dependencies) : body;
        if (query['dry-run'] === '1') {
          const preview = await jobs.dryRun(meant, signal);
          return { status: 200, body: { ok: true, ...preview } };
        }
        const id = await jobs.submit(meant, {
          isDryRun: query['dry-run'] === 'job',
          submitter: query.submitter,
          placement: query.placement,
        });
        return { status: 202, body: { id } };
      },
    }),
    question('/v1/jobs', 'Lists all jobs without their logs', jobRecord.array(), async () =>
      (await jobs.list()).map((job) => ({ ...job, log: [] })),
    ),
    question('/v1/jobs/{id}', 'Describes one job', jobRecord, ({ id }) => jobs.get(parseJobId(id))),
    route({
      method: 'DELETE',
      path: '/v1/jobs/{id}',
      summary: 'Cancels a job',
      answers: { 202: z.object({}) },
      handle: async ({ params }) => {
        await jobs.cancel(parseJobId(params.id));
        return { status: 202, body: {} };
      },
    }),
    route({
      method: 'GET',
      path: '/v1/jobs/{id}/events',
      summary: 'Returns the events of a job until its end, one JobEvent per line',
      answers: { 200: { type: 'application/x-ndjson' } },
      handle: async ({ params, signal }) => {
        const id = parseJobId(params.id);
        await jobs.get(id);
        const events = jobs.watch(id, signal);
        // What keeps the first one from coming, can still be told.
        const first = await events.next();
        const lines = encodeLines(first.done === true ? [] : [first.value], events);
        return { status: 200, body: Readable.from(lines) };
      },
    }),
  ];
}

async function* encodeLines(
  first: readonly JobEvent[],
  rest: AsyncIterable<JobEvent>,
): AsyncGenerator<string> {
  for (const event of first) yield `${JSON.stringify(event)}\n`;
  for await (const event of rest) yield `${JSON.stringify(event)}\n`;
}

/** @throws AppError JOB_NOT_FOUND */
function parseJobId(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) {
    throw new AppError('JOB_NOT_FOUND', `'${text}' is not a job id`, {
      hint: 'List the jobs: gnt-job list',
    });
  }
  return Number(text);
}
