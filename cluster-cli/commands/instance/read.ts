import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import {
  type InstanceRow,
  instanceFields,
  type OrphanRow,
  summaryFields,
  type SummaryRow,
} from '../../fields/instance-fields.ts';
import { type FieldTable, selectFields } from '../../render/select.ts';
import { renderHookBook } from '../../render/hook-book.ts';
import { renderInstanceInfo } from '../../render/instance-info.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

/** `gnt-instance list [NAME…]`. @throws AppError, CommandFailure */
export async function runList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const print = async <T extends SummaryRow>(
    table: FieldTable<T>,
    asked: Promise<readonly T[]>,
    ofOrphans: (rows: readonly OrphanRow[]) => readonly T[],
  ): Promise<void> => {
    const [instances, orphans] = await Promise.all([asked, client.orphans()]);
    const rows = orphans.map((orphan) => ({ ...orphan, status: 'ERROR_orphan' as const }));
    const items = [...instances, ...ofOrphans(rows)];
    const notFound = (name: string): AppError =>
      instanceNotFound(
        name,
        items.map((item) => item.name),
      );
    const nameOf = ({ name }: T): string => name;
    printList(context, { table, items, nameOf, names, notFound, defaultSort: 'name' }, options);
  };
  const same = <T>(rows: T): T => rows;
  // Refused before anything is asked for.
  selectFields(instanceFields, options.output);
  await (isSummary(options)
    ? print<SummaryRow>(summaryFields, client.instanceSummaries(), same)
    : print<InstanceRow>(instanceFields, client.instances(), same));
}

/** Whether a list shows, sorts and filters by no more than what each node knows of all instances. */
function isSummary({ output, sort, filter, json }: ListOptions): boolean {
  if (json) return false;
  const known = new Set(summaryFields.fields.map(({ name }) => name));
  const shown = selectFields(instanceFields, output).map(({ name }) => name);
  const sorted = (sort ?? '').split(',').filter((name) => name !== '');
  const isKnown = (name: string): boolean => known.has(name.replace(/^-/, ''));
  // A word of a filter that is the name of another field may be a value too: then it costs time.
  const words = filter?.match(/[a-z_][\w./]*/gi) ?? [];
  const others = new Set(instanceFields.fields.map(({ name }) => name));
  const isOther = (word: string): boolean =>
    !known.has(word) && (others.has(word) || /\/\d+$/.test(word));
  return [...shown, ...sorted].every(isKnown) && !words.some(isOther);
}

export function runListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, instanceFields, options);
}

/**
 * `gnt-instance info [NAME…|--all]`. With one name `--json` is its record, else an array.
 * @throws AppError, CommandFailure
 */
export async function runInfo(
  context: Context,
  names: readonly string[],
  options: { readonly all?: boolean; readonly json?: boolean },
): Promise<void> {
  if (names.length === 0 && !options.all) {
    throw new AppError(
      'USAGE',
      'Please use the --all option if you want info about all instances',
      {
        hint: 'or name the instances',
      },
    );
  }
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.instances()
      : await Promise.all(names.map((name) => client.instance(name)));
  if (options.json) {
    const [first] = infos;
    context.print(JSON.stringify(names.length === 1 ? first : infos, null, 2));
    return;
  }
  context.print(infos.map((info) => renderInstanceInfo(info).join('\n')).join('\n\n'));
}

/** `gnt-instance list-tags NAME`. @throws AppError */
export async function runListTags(context: Context, name: string): Promise<void> {
  const { tags } = await (await context.client()).instance(name);
  for (const tag of [...tags].sort()) context.print(tag);
}

/** `gnt-instance hooks NAME`. @throws AppError, CommandFailure */
export async function runHooks(
  context: Context,
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const book = await (await context.client()).hooks(name);
  if (options.json) context.print(JSON.stringify(book, null, 2));
  else if (book.stages.length + book.remarks.length === 0)
    context.print(`no hooks are run for ${name}`);
  else context.print(renderHookBook(book).join('\n'));
}

function instanceNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('INSTANCE_NOT_FOUND', `instance '${name}' does not exist`, {
    hint: near ? `did you mean ${near}?` : 'gnt-instance list shows what there is',
    details: { name },
  });
}
