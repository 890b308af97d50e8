import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import {
  type Attachment,
  attachmentName,
  type InputValue,
  type RunListName,
  type RunLists,
  runLists,
  runListScript,
  type RunListScript,
} from '#shared/contract/lifecycle.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { isUnset } from './parse-documents.ts';
import { readScriptHeader } from './run-list-header.ts';
import { invalidRunList, parseInputAt, parsePlaced } from './run-list-yaml.ts';

export interface RunListOptions {
  /** A ServerTemplate in right_st's format. */
  readonly runList?: string;
  readonly bootScript?: readonly string[];
  readonly operationalScript?: readonly string[];
  readonly decommissionScript?: readonly string[];
}

const inputs = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).nullable());
/** right_st accepts a published RightScript of RightScale instead of a file. */
const published = z.object({ Name: z.string(), Revision: z.unknown(), Publisher: z.unknown() });
const scripts = z.array(z.union([z.string(), published.partial()])).nullish();
/** Other fields of a ServerTemplate only have a meaning for RightScale. */
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
/**
 * Reads the given run lists; undefined without any, null for `none`. Files are read here, so that
 * the host receives bytes and validated data.
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
  throw invalidRunList(
    `the run lists: ${issue?.path.join('.') ?? ''}${issue?.path.length ? ': ' : ''}${issue?.message ?? ''}`,
  );
}

type Template = Record<RunListName, string[]> & { readonly inputs: Record<string, InputValue> };

const NO_TEMPLATE: Template = { boot: [], operational: [], decommission: [], inputs: {} };

function readTemplate(given: string, context: Context): Template {
  const file = withoutSign(given);
  const text = context.values.readText('--run-list', file);
  const { data, lineOf } = parsePlaced(text, file, serverTemplate);
  for (const part of ['MultiCloudImages', 'Alerts'] as const)
    if (data[part] !== undefined) context.warn(`${file}: ${part} is ignored`);
  const filesOf = (list: keyof typeof data.RightScripts): string[] =>
    (data.RightScripts[list] ?? []).map((entry, index) => {
      if (typeof entry === 'string') return join(dirname(file), entry);
      throw publishedScript(`${file}: line ${lineOf(['RightScripts', list, index])}`, entry.Name);
    });
  return {
    boot: filesOf('Boot'),
    operational: filesOf('Operational'),
    decommission: filesOf('Decommission'),
    inputs: Object.fromEntries(
      Object.entries(data.Inputs ?? {}).map(([name, value]) => [
        name,
        parseInputAt(name, value, () => `${file}: line ${lineOf(['Inputs', name])}`),
      ]),
    ),
  };
}

function publishedScript(place: string, name: string | undefined): AppError {
  const which = name === undefined ? '' : ` '${name}'`;
  return invalidRunList(
    `${place}: the published RightScript${which} cannot be downloaded`,
    'Save its text in a file beside the run list, and list the name of the file',
  );
}

function readScript(
  option: string,
  given: string,
  context: Context,
  attachments: Map<string, Attachment>,
): RunListScript {
  const file = withoutSign(given);
  const bytes = readFile(option, file, context);
  const text = bytes.toString('utf8');
  if (!text.startsWith('#!'))
    throw invalidRunList(
      `${file}: line 1: a script must begin with #! and the path of its interpreter`,
    );
  const header = readScriptHeader(text, file);
  for (const attached of header.attachments) {
    const path = attachmentPath(file, attached);
    const bytesOf = readFile(option, path, context).toString('base64');
    const former = attachments.get(attached);
    if (former !== undefined && former.content !== bytesOf)
      throw invalidRunList(`${path}: another attachment has the name '${attached}' too`);
    attachments.set(attached, { name: attached, content: bytesOf });
  }
  const script = runListScript.safeParse({
    name: basename(file).replaceAll(/[^A-Za-z0-9_.+-]/g, '-'),
    content: bytes.toString('base64'),
    inputs: header.inputs,
  });
  if (script.success) return script.data;
  const [issue] = script.error.issues;
  throw invalidRunList(`${file}: ${issue?.message ?? ''}`);
}

/**
 * Returns the path of an attachment. root reads scripts that others may have written, so an
 * attachment must lie in `attachments` beside the script, without links and other paths.
 */
function attachmentPath(file: string, attached: string): string {
  const path = join(dirname(file), 'attachments', attached);
  if (!attachmentName.safeParse(attached).success)
    throw invalidRunList(`${file}: '${attached}' is not a valid name of an attachment`);
  let real: string;
  try {
    real = realpathSync(path);
  } catch {
    return path; // The later read reports the reason.
  }
  if (real !== join(realpathSync(dirname(file)), 'attachments', attached))
    throw invalidRunList(`${path}: an attachment must not be, or be below, a symbolic link`);
  return path;
}

/** Reads a file. A missing or too large file is an error of the run list that names it. */
function readFile(option: string, file: string, context: Context): Buffer {
  try {
    return context.values.readBytes(option, file);
  } catch (error) {
    throw new AppError('RUN_LIST_INVALID', messageOf(error), {
      hint: 'Put scripts and attachments, at most 1 MiB each, beside the run list',
      cause: error,
    });
  }
}

function withoutSign(file: string): string {
  return file.startsWith('@') ? file.slice(1) : file;
}
