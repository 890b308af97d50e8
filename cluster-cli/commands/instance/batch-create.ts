import { z } from 'zod';
import { ganetiCreate, planCreate } from '#shared/contract/ganeti-create.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { type Opcode, opcode as opcodeSchema } from '#shared/contract/opcode.ts';
import { findUnusable } from '#shared/contract/unusable-text.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { watchJob } from '../../progress/watch.ts';
import type { Context } from '../../terminal/context.ts';
import { holdInterrupt, nameSome, refusalOf } from '../between-jobs.ts';
import type { SubmitOptions } from '../submit.ts';

/** Ganeti's names of fields, if they differ by more than case. */
const GANETI_NAMES: Readonly<Record<string, string>> = {
  name: 'instance_name',
  node: 'pnode',
  memoryMiB: 'maxmem',
  sizeBytes: 'size',
  networkName: 'network',
  osParameters: 'osparams',
  osParametersPrivate: 'osparams_private',
  osParametersSecret: 'osparams_secret',
  safeInstall: 'enable_safe_install',
  bootEnv: 'bootenv',
};

/** A file of 1 MiB can have a hundred thousand entries. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM_LENGTH = 500;
const MAX_NAME_LENGTH = 63;

interface Entry {
  /** `instances.json: entry 2 (web2)`. */
  readonly place: string;
  readonly opcode: Opcode & { readonly opcode: 'INSTANCE_CREATE' };
}

/**
 * Creates all instances of a file, or none if one would be refused.
 * @throws AppError VALIDATION with all problems, before the first job; COMMAND_FAILED after failed
 * jobs
 */
export async function runBatchCreate(
  context: Context,
  file: string,
  options: SubmitOptions,
): Promise<void> {
  const entries = readEntries(
    file === '-' ? 'stdin' : file,
    context.values.readWholeText('batch-create', file),
  );
  await requireAccepted(context, entries);
  if (options.dryRun) {
    context.note(`${entries.length} instance(s) would be created; nothing was changed`);
    return;
  }
  const jobs: Submitted[] = [];
  const watched: (JobRecord | null)[] = [];
  try {
    await submitAll(context, entries, jobs, options);
    if (options.submit) {
      if (options.json) context.print(JSON.stringify(jobs));
      else context.print(`Submitted jobs ${jobs.map(({ id }) => id ?? 'none').join(', ')}`);
    } else await watchAll(context, jobs, watched, options);
  } catch (error) {
    noteRest(context, entries.slice(jobs.length), jobs.slice(watched.length));
    throw error;
  }
  const ended = options.submit ? jobs : watched;
  if (options.json && !options.submit) context.print(JSON.stringify(ended, null, 2));
  const failed = ended.filter((job) => job === null || job.id === null).length;
  if (failed > 0)
    throw new AppError(
      'COMMAND_FAILED',
      `${failed} of ${entries.length} instance(s) could not be created`,
      { hint: 'See the reasons above; gnt-job list shows the jobs' },
    );
  if (!options.submit) context.note(`${entries.length} instance(s) created`);
}

/** Reports the rest after an interrupt or the loss of the daemon. */
function noteRest(
  context: Context,
  unsent: readonly Entry[],
  unwatched: readonly Submitted[],
): void {
  const ids = unwatched.flatMap(({ id }) => (id === null ? [] : [String(id)]));
  if (ids.length > 0) context.note(`these jobs continue: ${nameSome(ids)}`);
  const names = unsent.map(({ opcode }) => opcode.name);
  if (names.length > 0) context.note(`not submitted: ${nameSome(names)}`);
}

/** @throws AppError VALIDATION that names file, entry and key */
export function readEntries(file: string, text: string): readonly Entry[] {
  const invalid = (problems: readonly string[]): AppError =>
    new AppError('VALIDATION', listProblems(problems).join('; '), {
      hint: 'No instance was created. See the example of gnt-instance batch-create --help',
    });
  const json = parse(text);
  if ('problem' in json) throw invalid([`${file}: ${json.problem}`]);
  const list = z.looseObject({}).array().min(1).safeParse(json.value);
  if (!list.success)
    throw invalid([`${file}: expected a JSON list with at least one object per instance`]);
  const problems: string[] = [];
  const names = new Map<unknown, number>();
  const entries = list.data.flatMap((given, at): readonly Entry[] => {
    const name = given['instance_name'];
    const shown = typeof name === 'string' ? ` (${name.slice(0, MAX_NAME_LENGTH)})` : '';
    const place = `${file}: entry ${at + 1}${shown}`;
    const former = names.get(name);
    if (former !== undefined)
      problems.push(`${place}: instance_name: the same as in entry ${former}`);
    if (typeof name === 'string') names.set(name, at + 1);
    const parsed = parseEntry(given);
    if (Array.isArray(parsed)) {
      problems.push(...parsed.map((problem) => `${place}: ${problem}`));
      return [];
    }
    return [{ place, opcode: parsed }];
  });
  if (problems.length > 0) throw invalid(problems);
  return entries;
}

/** Returns the first problems, each with a bounded length. */
function listProblems(problems: readonly string[]): readonly string[] {
  const more = problems.length - MAX_PROBLEMS;
  return [
    ...problems.slice(0, MAX_PROBLEMS).map((problem) => problem.slice(0, MAX_PROBLEM_LENGTH)),
    ...(more > 0 ? [`${more} more problem(s)`] : []),
  ];
}

/** Parses JSON, also after a byte order mark, as RFC 8259 section 8.1 permits. */
function parse(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text.replace(/^\uFEFF/, '')) };
  } catch (error) {
    // The message of the parser quotes the text, which may be a secret.
    const [, line] = /\(line (\d+) column \d+\)$/.exec(messageOf(error)) ?? [];
    return { problem: `not valid JSON${line === undefined ? '' : ` (line ${line})`}` };
  }
}

/** Returns an opcode or the problems, without values, which may be secret. */
function parseEntry(given: unknown): Entry['opcode'] | string[] {
  const unusable = findUnusable(given);
  if (unusable !== undefined) return [`${unusable.path.join('.')}: ${unusable.problem}`];
  const body = ganetiCreate.safeParse(given);
  if (!body.success) return body.error.issues.map(describe);
  const parsed = opcodeSchema.safeParse(planCreate(body.data));
  if (!parsed.success) return parsed.error.issues.map(describe);
  if (parsed.data.opcode !== 'INSTANCE_CREATE') throw new Error('not a creation');
  return parsed.data;
}

function describe({ path, ...issue }: z.core.$ZodIssue): string {
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  const message = isMissing ? 'is missing' : issue.message;
  const keys = path.map((key) =>
    typeof key === 'string' ? (ownValue(GANETI_NAMES, key) ?? toSnakeCase(key)) : String(key),
  );
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`;
}

function toSnakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** @throws AppError VALIDATION with the refusals of the daemon */
async function requireAccepted(context: Context, entries: readonly Entry[]): Promise<void> {
  const client = await context.client();
  const problems: string[] = [];
  for (const { place, opcode } of entries) {
    try {
      await client.ask('POST /v1/jobs', {
        body: opcode,
        query: { 'dry-run': '1' },
        timeoutMs: Infinity,
      });
    } catch (error) {
      problems.push(`${place}: ${refusalOf(error)}`);
    }
  }
  if (problems.length === 0) return;
  for (const problem of listProblems(problems)) context.note(problem);
  throw new AppError(
    'VALIDATION',
    `${problems.length} of ${entries.length} entries are refused; no instance was created`,
    { hint: 'See the reasons above' },
  );
}

interface Submitted {
  readonly name: string;
  /** Null: the job was refused, although the check had accepted it. */
  readonly id: number | null;
}

/** @param jobs gets each submitted job */
async function submitAll(
  context: Context,
  entries: readonly Entry[],
  jobs: Submitted[],
  { printJobid }: SubmitOptions,
): Promise<void> {
  const client = await context.client();
  using between = holdInterrupt(context);
  for (const { place, opcode } of entries) {
    between.throwIfInterrupted();
    const { name } = opcode;
    try {
      const answer = await client.ask('POST /v1/jobs', { body: opcode });
      const id = 'id' in answer ? answer.id : null;
      jobs.push({ name, id });
      if (printJobid && id !== null) context.print(String(id));
    } catch (error) {
      context.warn(`${place}: ${refusalOf(error)}`);
      jobs.push({ name, id: null });
    }
  }
}

/**
 * Follows the jobs one after another. A failed job does not end the function.
 * @param ended gets each ended job; null for a failed one
 */
async function watchAll(
  context: Context,
  jobs: readonly Submitted[],
  ended: (JobRecord | null)[],
  { json }: SubmitOptions,
): Promise<void> {
  using between = holdInterrupt(context);
  for (const { name, id } of jobs) {
    between.throwIfInterrupted();
    try {
      ended.push(id === null ? null : await watchJob(context, id, { json }));
    } catch (error) {
      context.warn(`${name}: ${refusalOf(error)}`);
      ended.push(null);
    }
  }
}
