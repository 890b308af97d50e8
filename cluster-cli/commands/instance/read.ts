import type { ListedOrphan } from '#shared/contract/api.ts';
import type { InstanceSummaryField } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import {
  type InstanceRow,
  instanceFields,
  type OrphanRow,
  summaryFields,
  type SummaryRow,
} from '../../fields/instance-fields.ts';
import { selectFields } from '../../render/select.ts';
import { renderHookBook } from '../../render/hook-book.ts';
import { renderInstanceInfo } from '../../render/instance-info.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { type ListOptions, openList, printFields } from '../list.ts';

export async function runList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  // Refuse wrong fields before any request.
  const used = fieldsInUse(options);
  const kind = { names, notFound: instanceNotFound, defaultSort: 'name' };
  const nameOf = ({ name }: SummaryRow): string => name;
  const client = await context.client();
  const known = options.json ? null : summaryParts(used);
  if (known === null) {
    const list = openList<InstanceRow>(
      context,
      { ...kind, nameOf, table: instanceFields },
      options,
    );
    const orphans = client.ask('GET /v1/orphans');
    // The await below sees the failure.
    orphans.catch(() => undefined);
    for await (const slice of client.instanceSlices()) list.add(slice);
    list.add((await orphans).map(toRow));
    return list.print();
  }
  const list = openList<SummaryRow>(context, { ...kind, nameOf, table: summaryFields }, options);
  const orphans = client.ask('GET /v1/orphans');
  // The await below sees the failure.
  orphans.catch(() => undefined);
  // A row has only these fields, and its columns read no others.
  for await (const slice of client.instanceSummaries(known)) list.add(slice);
  list.add((await orphans).map(toRow));
  list.print();
}

function toRow(orphan: ListedOrphan): OrphanRow {
  return { ...orphan, status: 'ERROR_orphan' };
}

/**
 * Returns the fields that a list shows, sorts and filters by.
 * @throws AppError USAGE
 */
function fieldsInUse({ output, sort, filter }: ListOptions): readonly string[] {
  const shown = selectFields(instanceFields, output).map(({ name }) => name);
  const sorted = (sort ?? '').split(',').filter((name) => name !== '');
  // A word of a filter with the name of a field may be a value. Then the list only takes longer.
  const words = filter?.match(/[a-z_][\w./]*/gi) ?? [];
  const all = new Set(instanceFields.fields.map(({ name }) => name));
  const meant = words.filter((word) => all.has(word) || /\/\d+$/.test(word));
  return [...shown, ...sorted.map((name) => name.replace(/^-/, '')), ...meant];
}

/** Returns the parts of a summary that the columns need; null if they need more than summaries. */
function summaryParts(used: readonly string[]): readonly InstanceSummaryField[] | null {
  const parts = new Set<InstanceSummaryField>(['name', 'status']);
  for (const name of used) {
    const madeOf = summaryFields.fields.find((field) => field.name === name)?.madeOf;
    if (madeOf === undefined) return null;
    for (const part of madeOf) parts.add(part);
  }
  return [...parts];
}

export function runListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, instanceFields, options);
}

/** Prints instances. With one name `--json` prints its record, else an array. */
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
        hint: 'gnt-instance info --all, or gnt-instance info NAME',
      },
    );
  }
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.instances()
      : await Promise.all(names.map((name) => client.ask('GET /v1/instances/{name}', { name })));
  if (options.json) {
    const [first] = infos;
    context.print(JSON.stringify(names.length === 1 ? first : infos, null, 2));
    return;
  }
  const texts = infos.map((info) => renderInstanceInfo(info, options.all).join('\n'));
  context.print(texts.join('\n\n'));
}

export async function runListTags(
  context: Context,
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const instance = await client.ask('GET /v1/instances/{name}', { name });
  const tags = [...instance.tags].sort();
  if (options.json) context.print(JSON.stringify(tags, null, 2));
  else for (const tag of tags) context.print(tag);
}

export async function runHooks(
  context: Context,
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const book = await (await context.client()).ask('GET /v1/instances/{name}/hooks', { name });
  if (options.json) context.print(JSON.stringify(book, null, 2));
  else if (book.stages.length + book.remarks.length === 0) context.print(`no hooks for ${name}`);
  else context.print(renderHookBook(book).join('\n'));
}

function instanceNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('INSTANCE_NOT_FOUND', `instance '${name}' does not exist`, {
    hint: near ? `Did you mean ${near}?` : 'gnt-instance list shows the instances',
    details: { name },
  });
}
