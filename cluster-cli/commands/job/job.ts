import type { JobRecord } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { failureOfJob } from '../../failures/failure.ts';
import { jobFields } from '../../fields/other-fields.ts';
import { watchJob } from '../../progress/watch.ts';
import { formatDuration, formatTime } from '../../render/format.ts';
import { type OutlineEntry, renderOutline } from '../../render/outline.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

/** @throws AppError USAGE */
function parseJobId(text: string): number {
  const id = Number(text);
  if (/^\d{1,15}$/.test(text) && id > 0) return id;
  throw new AppError('USAGE', `'${text}' is not a job id`, {
    hint: 'gnt-job list shows the jobs',
    details: { value: text },
  });
}

export async function runJobList(
  context: Context,
  ids: readonly string[],
  options: ListOptions & { readonly running?: boolean },
): Promise<void> {
  const names = ids.map((id) => String(parseJobId(id)));
  const client = await context.client();
  const all = await client.ask('GET /v1/jobs');
  const items = options.running ? all.filter(isUnfinished) : all;
  printList(
    context,
    {
      table: jobFields,
      items,
      nameOf: (job) => String(job.id),
      names,
      notFound: jobNotFound,
      defaultSort: 'id',
    },
    options,
  );
}

export function runJobListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, jobFields, options);
}

export async function runJobInfo(
  context: Context,
  ids: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const numbers = ids.map(parseJobId);
  const client = await context.client();
  const jobs = await Promise.all(numbers.map((id) => client.ask('GET /v1/jobs/{id}', { id })));
  if (options.json) {
    context.print(JSON.stringify(jobs.length === 1 ? jobs[0] : jobs, null, 2));
    return;
  }
  context.print(jobs.map((job) => renderOutline(describeJob(job)).join('\n')).join('\n\n'));
}

function describeJob(job: JobRecord): readonly OutlineEntry[] {
  const { error } = job;
  return [
    {
      key: 'Job ID',
      value: job.id,
      children: [
        { key: 'Status', value: job.status },
        ...(job.node === undefined ? [] : [{ key: 'Node', value: job.node }]),
        { key: 'Received', value: formatTime(job.receivedAtMs) },
        {
          key: 'Processing start',
          value: `${formatTime(job.startedAtMs)}${after(job.receivedAtMs, job.startedAtMs)}`,
        },
        {
          key: 'Processing end',
          value: `${formatTime(job.endedAtMs)}${after(job.startedAtMs, job.endedAtMs)}`,
        },
        ...(job.waitsFor.length > 0
          ? [{ key: 'Waits for', value: job.waitsFor.map((id) => `job ${id}`).join(', ') }]
          : []),
        ...(job.waitsBecause == null ? [] : [{ key: 'Waiting for', value: job.waitsBecause }]),
        { key: 'Operation', value: job.summary, children: describeInput(job.input) },
        ...(error === null
          ? []
          : [
              {
                key: 'Error',
                value: `${error.code}: ${error.message}`,
                children: [
                  { key: 'phase', value: error.phase },
                  ...(error.stage === null ? [] : [{ key: 'stage', value: error.stage }]),
                  ...(error.hint === null ? [] : [{ key: 'hint', value: error.hint }]),
                  ...error.logTail.map((line) => ({ key: 'log', value: line })),
                ],
              },
            ]),
        {
          key: 'Execution log',
          children: job.log.map((entry) => ({
            key: `${entry.sequence}, ${formatTime(entry.atMs)}`,
            value: entry.message,
          })),
        },
        ...(job.result === null || job.result === undefined
          ? []
          : [{ key: 'Result', value: JSON.stringify(job.result) }]),
      ],
    },
  ];
}

function describeInput(input: JobRecord['input']): readonly OutlineEntry[] {
  return Object.entries(input).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }));
}

function after(fromMs: number | null, toMs: number | null): string {
  return fromMs === null || toMs === null ? '' : ` (after ${formatDuration(toMs - fromMs)})`;
}

/** Attaches to a running job, or prints the result of a finished one. Ends with the job. */
export async function runJobWatch(
  context: Context,
  idText: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const id = parseJobId(idText);
  if (options.json) await watchAsJson(context, id);
  else {
    const job = await watchJob(context, id);
    const took =
      job.startedAtMs !== null && job.endedAtMs !== null
        ? ` in ${formatDuration(job.endedAtMs - job.startedAtMs)}`
        : '';
    context.print(`job ${id} (${job.summary}) succeeded${took}`);
  }
}

/** Prints events as they happen, one JSON object per line. */
async function watchAsJson(context: Context, id: number): Promise<void> {
  const { watchJobEvents } = await import('../../client/job-events.ts');
  const client = await context.client();
  for await (const event of watchJobEvents(client, id)) {
    if (event.type === 'reconnecting') continue;
    context.print(JSON.stringify(event));
    if (event.type === 'end' && event.job.status !== 'success') throw failureOfJob(event.job);
  }
}

export async function runJobCancel(context: Context, ids: readonly string[]): Promise<void> {
  const numbers = ids.map(parseJobId);
  const client = await context.client();
  for (const id of numbers) {
    await client.ask('DELETE /v1/jobs/{id}', { id });
    context.note(`job ${id} is being canceled: gnt-job watch ${id}`);
  }
}

function isUnfinished(job: JobRecord): boolean {
  return ['queued', 'waiting', 'running', 'canceling'].includes(job.status);
}

function jobNotFound(id: string): AppError {
  return new AppError('JOB_NOT_FOUND', `job ${id} does not exist`, {
    hint: 'gnt-job list shows the jobs',
    details: { id },
  });
}
