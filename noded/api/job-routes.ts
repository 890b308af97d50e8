import { Readable } from 'node:stream';
import type Router from '@koa/router';
import { opcode } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobEvent } from '#shared/contract/job.ts';
import type { ApiDependencies } from './api-dependencies.ts';
import { parseInput } from './http-errors.ts';
import { readJson } from './read-body.ts';
import { untilGone } from './until-gone.ts';

export function addJobRoutes(router: Router, { jobs }: ApiDependencies): void {
  router.post('/v1/jobs', async (context) => {
    const requested = parseInput(opcode, await readJson(context.req));
    const dryRun = context.query['dry-run'];
    if (dryRun === '1') {
      await jobs.dryRun(requested, untilGone(context.res));
      context.body = { ok: true };
      return;
    }
    context.status = 202;
    context.body = { id: await jobs.submit(requested, { isDryRun: dryRun === 'job' }) };
  });
  router.get('/v1/jobs', async (context) => {
    context.body = (await jobs.list()).map((job) => ({ ...job, log: [] }));
  });
  router.get('/v1/jobs/:id', async (context) => {
    context.body = await jobs.get(parseJobId(context.params['id']));
  });
  router.delete('/v1/jobs/:id', async (context) => {
    await jobs.cancel(parseJobId(context.params['id']));
    context.status = 202;
    context.body = {};
  });
  router.get('/v1/jobs/:id/events', async (context) => {
    const id = parseJobId(context.params['id']);
    await jobs.get(id);
    context.type = 'application/x-ndjson';
    const events = jobs.watch(id, untilGone(context.res));
    // What keeps the first one from coming, can still be told.
    const first = await events.next();
    context.body = Readable.from(encodeLines(first.done === true ? [] : [first.value], events));
  });
}

async function* encodeLines(
  first: readonly JobEvent[],
  rest: AsyncIterable<JobEvent>,
): AsyncGenerator<string> {
  for (const event of first) yield `${JSON.stringify(event)}\n`;
  for await (const event of rest) yield `${JSON.stringify(event)}\n`;
}

/** @throws AppError JOB_NOT_FOUND */
function parseJobId(text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,9}$/.test(text)) {
    throw new AppError('JOB_NOT_FOUND', `'${text ?? ''}' is not a job id`, {
      hint: 'gnt-job list shows the jobs',
    });
  }
  return Number(text);
}
