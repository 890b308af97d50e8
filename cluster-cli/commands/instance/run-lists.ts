import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import {
  type Attachment,
  attachmentName,
  type DeclaredInput,
  type InputValue,
  parseInputValue,
  type RunListName,
  type RunLists,
  runLists,
  type RunListScript,
} from '#shared/contract/lifecycle.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';
import type { Context } from '../../terminal/context.ts';
import { isUnset } from './parse-documents.ts';

export interface RunListOptions {
  /** A ServerTemplate in right_st's format. */
  readonly runList?: string;
  readonly bootScript?: readonly string[];
  readonly operationalScript?: readonly string[];
  readonly decommissionScript?: readonly string[];
}

const inputs = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).nullable());
const scripts = z.array(z.string()).nullish();
/** What else a ServerTemplate may have is RightScale's alone. */
const serverTemplate = z.strictObject({
  Name: z.string().optional(),
  Description: z.string().nullish(),
  RightScripts: z
    .strictObject({ Boot: scripts, Operational: scripts, Decommission: scripts })
    .partial(),
  Inputs: inputs.nullish(),
  MultiCloudImages: z.unknown().optional(),
  Alerts: z.unknown().optional(),
});
/** The comment at the head of a RightScript. */
const metadata = z.strictObject({
  'RightScript Name': z.string().optional(),
  Description: z.string().nullish(),
  Inputs: z
    .record(
      z.string(),
      z.strictObject({
        'Input Type': z.string().optional(),
        Category: z.string().nullish(),
        Description: z.string().nullish(),
        Required: z.boolean().optional(),
        Advanced: z.boolean().optional(),
        Default: z.union([z.string(), z.number(), z.boolean()]).nullish(),
        'Possible Values': z.array(z.unknown()).nullish(),
      }),
    )
    .nullish(),
  Attachments: z.array(z.string()).nullish(),
  Packages: z.unknown().optional(),
});

/**
 * Run lists as they are given; undefined without any, null for `none`. Files are read here:
 * the host gets bytes and validated data.
 * @throws AppError RUN_LIST_INVALID by file and line, INPUT_MISSING, FILE_UNREADABLE
 */
export function readRunLists(
  options: RunListOptions,
  context: Context,
): RunLists | null | undefined {
  const { runList, bootScript, operationalScript, decommissionScript } = options;
  const files = { '--boot-script': bootScript, '--operational-script': operationalScript };
  const given = Object.entries({ ...files, '--decommission-script': decommissionScript });
  const all = [runList === undefined ? [] : [runList], ...given.map(([, list]) => list ?? [])];
  if (all.flat().length === 0) return undefined;
  if (all.flat().every((file) => isUnset('--run-list', file, context))) return null;
  const template = runList === undefined ? NO_TEMPLATE : readTemplate(runList, context);
  const attachments = new Map<string, Attachment>();
  const read = (option: string, from: readonly string[] = []): RunListScript[] =>
    from.map((file) => readScript(option, file, context, attachments));
  const lists = runLists.safeParse({
    boot: [...read('--run-list', template.boot), ...read('--boot-script', bootScript)],
    operational: [
      ...read('--run-list', template.operational),
      ...read('--operational-script', operationalScript),
    ],
    decommission: [
      ...read('--run-list', template.decommission),
      ...read('--decommission-script', decommissionScript),
    ],
    attachments: [...attachments.values()],
    inputs: template.inputs,
  });
  if (lists.success) return lists.data;
  const [issue] = lists.error.issues;
  throw invalid(
    `the run lists: ${issue?.path.join('.') ?? ''}${issue?.path.length ? ': ' : ''}${issue?.message ?? ''}`,
  );
}

type Template = Record<RunListName, string[]> & { readonly inputs: Record<string, InputValue> };

const NO_TEMPLATE: Template = { boot: [], operational: [], decommission: [], inputs: {} };

function readTemplate(given: string, context: Context): Template {
  const file = withoutSign(given);
  const text = context.values.readText('--run-list', file);
  const template = parseYaml(text, file, serverTemplate, 1);
  for (const part of ['MultiCloudImages', 'Alerts'] as const)
    if (template[part] !== undefined) context.warn(`${file}: ${part} is ignored`);
  const { Boot, Operational, Decommission } = template.RightScripts;
  const beside = (names: readonly string[] | null | undefined): string[] =>
    (names ?? []).map((name) => join(dirname(file), name));
  return {
    boot: beside(Boot),
    operational: beside(Operational),
    decommission: beside(Decommission),
    inputs: Object.fromEntries(
      Object.entries(template.Inputs ?? {}).map(([name, value]) => [
        name,
        parseInput(name, value, file, text),
      ]),
    ),
  };
}

function readScript(
  option: string,
  given: string,
  context: Context,
  attachments: Map<string, Attachment>,
): RunListScript {
  const file = withoutSign(given);
  const bytes = readFile(option, file, context);
  const content = bytes.toString('base64');
  const text = bytes.toString('utf8');
  if (!text.startsWith('#!'))
    throw invalid(`${file}: line 1: a script must begin with #! and the path of its interpreter`);
  const head = /^#[ \t]*---[ \t]*\n((?:#.*\n)*?)#[ \t]*\.\.\.[ \t]*$/m.exec(text);
  const name = basename(file).replaceAll(/[^A-Za-z0-9_.+-]/g, '-');
  if (head?.[1] === undefined) return { name, content, inputs: null };
  const line = text.slice(0, head.index).split('\n').length + 1;
  const yaml = head[1].replaceAll(/^# ?/gm, '');
  const declared = parseYaml(yaml, file, metadata, line);
  for (const attached of declared.Attachments ?? []) {
    const path = attachmentPath(file, attached);
    const bytesOf = readFile(option, path, context).toString('base64');
    const former = attachments.get(attached);
    if (former !== undefined && former.content !== bytesOf)
      throw invalid(`${path}: another attachment has the name '${attached}' too`);
    attachments.set(attached, { name: attached, content: bytesOf });
  }
  if (declared.Inputs == null) return { name, content, inputs: null };
  const inputsOf = Object.entries(declared.Inputs).map(
    ([input, { Required, Default }]): DeclaredInput => ({
      name: input,
      required: Required ?? false,
      default: Default == null ? null : parseInput(input, Default, file, yaml),
    }),
  );
  return { name, content, inputs: inputsOf };
}

/**
 * A script may be somebody else's, and is read as root: it attaches what lies in `attachments`
 * beside it, and nothing that a link or a path leads to elsewhere.
 */
function attachmentPath(file: string, attached: string): string {
  const path = join(dirname(file), 'attachments', attached);
  if (!attachmentName.safeParse(attached).success)
    throw invalid(`${file}: '${attached}' is not a valid name of an attachment`);
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    return path; // Reading it says why.
  }
  if (real !== join(realpathSync(dirname(file)), 'attachments', attached))
    throw invalid(`${path}: an attachment must not be, or be below, a symbolic link`);
  return path;
}

/** What is missing or too large is a fault of the run list that names it. */
function readFile(option: string, file: string, context: Context): Buffer {
  try {
    return context.values.readBytes(option, file);
  } catch (error) {
    throw new AppError('RUN_LIST_INVALID', messageOf(error), {
      hint: 'put scripts and attachments, at most 1 MiB each, beside the run list',
      cause: error,
    });
  }
}

/** @param firstLine the line of the file in which the text begins */
function parseYaml<T>(text: string, file: string, schema: z.ZodType<T>, firstLine: number): T {
  const read = readYaml(text);
  if ('problem' in read) throw invalid(`${file}: ${read.problem.reason}`);
  const parsed = schema.safeParse(read.document.toJS({ maxAliasCount: 50 }) ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const key = issue?.code === 'unrecognized_keys' ? issue.keys[0] : issue?.path.at(-1);
  const line = firstLine + lineOf(text, String(key ?? ''));
  throw invalid(`${file}: line ${line}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

/** The line of a key, counted from 0. */
function lineOf(text: string, key: string): number {
  const found = text.split('\n').findIndex((line) => line.trim().startsWith(`${key}:`));
  return Math.max(0, found);
}

function parseInput(
  name: string,
  value: string | number | boolean | null,
  file: string,
  text: string,
): InputValue {
  try {
    return parseInputValue(value === null ? 'ignore' : String(value));
  } catch (error) {
    throw new AppError(
      'INPUT_MISSING',
      `${file}: line ${lineOf(text, name) + 1}: input ${name}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

function invalid(message: string): AppError {
  return new AppError('RUN_LIST_INVALID', message, {
    hint: 'write RightScripts: {Boot: [FILE, …], Operational: […], Decommission: […]}, Inputs: {NAME: text:VALUE}',
  });
}

function withoutSign(file: string): string {
  return file.startsWith('@') ? file.slice(1) : file;
}
