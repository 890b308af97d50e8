import type {
  RunListEnvironment,
  RunListName,
  ViewLifecycle,
  ViewScript,
} from '#shared/contract/lifecycle.ts';
import { RUN_LISTS } from '#shared/contract/lifecycle.ts';
import { reveal } from '#shared/secret/secret.ts';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';
import { bytesLeaf, describeLost, jsonLeaf, lostLeaf, textLeaf } from '../view/leaf.ts';
import type { Leaf } from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';

/**
 * Returns the input of the guest's agent: wanted state, scripts, variables and attachments. Empty
 * without run lists.
 */
export function runListLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { lifecycle } = view;
  if (!lifecycle) return [];
  return [
    ['lifecycle.json', jsonLeaf(lifecycle.status)],
    ...RUN_LISTS.flatMap((list) => listLeaves(view, lifecycle, list)),
    ...folderLeaves('attachments', lifecycle.attachments),
  ];
}

function listLeaves(
  view: ServedView,
  lifecycle: ViewLifecycle,
  list: RunListName,
): readonly (readonly [string, Leaf])[] {
  const scripts = lifecycle.lists[list];
  if (scripts.length === 0) return [];
  return [
    ...folderLeaves(`run-lists/${list}`, scripts),
    [`run-lists/${list}.env`, environmentLeaf(view, lifecycle, list)],
  ];
}

interface GuestFile {
  readonly name: string;
  readonly content: string;
}

/** Returns files one by one, and as one document: an agent fetches a list in one request. */
function folderLeaves(
  folder: string,
  files: readonly GuestFile[],
): readonly (readonly [string, Leaf])[] {
  if (files.length === 0) return [];
  const bytes = files.map(({ name, content }) => ({ name, body: Buffer.from(content, 'base64') }));
  return [
    ...bytes.map(({ name, body }) => [`${folder}/${name}`, secretLeaf(body)] as const),
    [`${folder}.bundle`, secretLeaf(bundleOf(bytes))],
  ];
}

function secretLeaf(body: Buffer): Leaf {
  return bytesLeaf(body, { isSecretBearing: true });
}

/** Digits of a position in all files together: 4 MiB and their heads. */
const POSITION_DIGITS = 8;

/**
 * Returns files as one document that a shell can split: for each file a line with the position of
 * its first byte in the document (from 1), its length and its name; an empty line; the bytes.
 */
function bundleOf(files: readonly { readonly name: string; readonly body: Buffer }[]): Buffer {
  const digits = (count: number): string => String(count).padStart(POSITION_DIGITS);
  const lineOf = (from: number, { name, body }: (typeof files)[number]): string =>
    `${digits(from)} ${digits(body.length)} ${name}\n`;
  let from = files.reduce((sum, file) => sum + Buffer.byteLength(lineOf(0, file)), 2);
  const head = files.map((file) => {
    const line = lineOf(from, file);
    from += file.body.length;
    return line;
  });
  return Buffer.concat([Buffer.from(`${head.join('')}\n`), ...files.map(({ body }) => body)]);
}

/** A shell's status for a command that it found and could not run. */
const STATUS_OF_REFUSED = 126;

/**
 * Returns lines for a shell, which sets `GNT_SCRIPT` to the name of the script first. They are
 * plain assignments when no script has its own variables. A script that needs a lost secret exits
 * there; the others run.
 */
function environmentLeaf(view: ServedView, lifecycle: ViewLifecycle, list: RunListName): Leaf {
  const scripts = lifecycle.lists[list];
  const environments = scripts.map((script) => environmentOf(script, lifecycle, list));
  const lost = environments.map((environment) => lostOf(view, environment));
  if (lost.every((names) => names.length > 0)) return lostLeaf([...new Set(lost.flat())]);
  const isCommon = environments.every((environment) => environment === lifecycle.env);
  const text = isCommon
    ? assignmentsOf(view, lifecycle.env)
    : [
        'case "${GNT_SCRIPT-}" in',
        ...environments.flatMap((environment, index) => [
          `${quoteForShell(scripts[index]?.name ?? '')})`,
          ...(lost[index]?.length ? refusalOf(lost[index]) : assignmentsOf(view, environment)),
          ';;',
        ]),
        'esac',
      ];
  return textLeaf(text.map((line) => `${line}\n`).join(''), { isSecretBearing: true });
}

function assignmentsOf(view: ServedView, environment: RunListEnvironment): readonly string[] {
  return Object.entries(environment).map(([name, value]) => {
    if ('text' in value) return `${name}=${quoteForShell(value.text)}`;
    const known = view.osParameters.get(value.parameter)?.value;
    return `${name}=${quoteForShell(known ? reveal(known) : '')}`;
  });
}

function lostOf(view: ServedView, environment: RunListEnvironment): readonly string[] {
  const parameters = Object.values(environment).flatMap((value) =>
    'parameter' in value ? [value.parameter] : [],
  );
  return [...new Set(parameters)].filter((name) => !view.osParameters.get(name)?.value);
}

function refusalOf(lost: readonly string[]): readonly string[] {
  return [`echo ${quoteForShell(describeLost(lost))}`, `exit ${STATUS_OF_REFUSED}`];
}

function environmentOf(
  { name, env }: ViewScript,
  lifecycle: ViewLifecycle,
  list: RunListName,
): RunListEnvironment {
  const own = env ?? lifecycle.env;
  const { next } = lifecycle.status;
  const isWanted = list === 'operational' && next?.do === 'run' && next.script === name;
  return isWanted ? { ...own, ...lifecycle.commandEnv } : own;
}
