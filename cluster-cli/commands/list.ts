import type { Option } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../terminal/context.ts';
import { globToRegex, parseFilter } from '../render/filter.ts';
import type { SizeUnit } from '../render/format.ts';
import { type FieldTable, findField, selectFields, sortItems } from '../render/select.ts';
import { renderTable } from '../render/table.ts';
import { option } from '../completion/command.ts';

export interface ListOptions {
  readonly output?: string;
  /** commander's name for `--no-headers` that is not given. */
  readonly headers: boolean;
  readonly separator?: string;
  readonly units?: SizeUnit;
  readonly filter?: string;
  readonly sort?: string;
  readonly json?: boolean;
}

/** Ganeti's options for every list. */
export function listOptions(): readonly Option[] {
  const group = 'Output:';
  return [
    option('-o, --output <fields>', 'fields to show, comma separated; +FIELDS adds to the usual', {
      group,
    }),
    option('--no-headers', 'no line of titles', { group }),
    option('--separator <text>', 'text between fields; nothing is aligned then', { group }),
    option('--units <unit>', 'sizes in h (for people), m, g or t (MiB, GiB, TiB, bare numbers)', {
      group,
      choices: ['h', 'm', 'g', 't'],
    }),
    option('-F, --filter <expression>', 'only what matches: \'status == "running"\'', { group }),
    option('--sort <fields>', 'order by these fields; -FIELD reverses', { group }),
    option('--json', 'print the whole records as a JSON array', { group }),
  ];
}

/** Lines that are written at a time: one by one they would take longer than all the rest. */
const AT_ONCE = 1000;

export interface Listing<T> {
  readonly table: FieldTable<T>;
  readonly items: readonly T[];
  /** What the arguments of the command select by. */
  readonly nameOf: (item: T) => string;
  readonly names: readonly string[];
  readonly notFound: (name: string) => AppError;
  /** What `--json` prints of an item. */
  readonly toJson?: (item: T) => unknown;
  readonly defaultSort: string;
}

/** Selects, filters, sorts and prints. @throws AppError USAGE, or what notFound makes */
export function printList<T>(context: Context, listing: Listing<T>, options: ListOptions): void {
  const { table } = listing;
  const fields = selectFields(table, options.output);
  const filter = options.filter === undefined ? null : parseFilter(options.filter);
  const named = selectNamed(listing);
  const kept = named.filter((item) =>
    filter ? filter((name) => findField(table, name).get(item)) : true,
  );
  // Names on the command line keep their order, as in Ganeti.
  const isOrdered = listing.names.length > 0 && options.sort === undefined;
  const sorted = isOrdered ? kept : sortItems(table, kept, options.sort ?? listing.defaultSort);
  if (options.json) {
    context.print(JSON.stringify(sorted.map(listing.toJson ?? ((item) => item)), null, 2));
    return;
  }
  const separator = options.separator ?? null;
  const lines = renderTable(fields, sorted, {
    hasHeaders: options.headers,
    separator,
    units: options.units ?? (separator === null ? 'h' : 'm'),
  });
  for (let at = 0; at < lines.length; at += AT_ONCE)
    context.print(lines.slice(at, at + AT_ONCE).join('\n'));
}

function selectNamed<T>(listing: Listing<T>): readonly T[] {
  const { items, names, nameOf } = listing;
  if (names.length === 0) return items;
  return names.flatMap((name) => {
    const regex = /[*?]/.test(name) ? globToRegex(name) : null;
    const matching = (fits: (full: string) => boolean): readonly T[] =>
      items.filter((item) => fits(nameOf(item)));
    if (regex) return matching((full) => regex.test(full));
    const found = matching((full) => full === name);
    // As Ganeti does: its first labels are enough, where they are one's alone.
    const begun = found.length > 0 ? found : matching((full) => full.startsWith(`${name}.`));
    if (begun.length === 0 || (found.length === 0 && begun.length > 1))
      throw listing.notFound(name);
    return begun;
  });
}

/** `list-fields`, as in Ganeti: name, title, description. */
export function printFields<T>(
  context: Context,
  table: FieldTable<T>,
  options: { readonly json?: boolean },
): void {
  const rows = [
    ...table.fields.map(({ name, title, kind, description }) => ({
      name,
      title,
      kind,
      description,
    })),
    ...(table.indexed ?? []).map((each) => {
      const { title, kind } = each.at(0);
      return {
        name: `${each.prefix}/N`,
        title: title.replace('/0', '/N'),
        kind,
        description: each.description,
      };
    }),
  ];
  if (options.json) {
    context.print(JSON.stringify(rows, null, 2));
    return;
  }
  const column = (name: 'name' | 'title' | 'kind' | 'description', title: string) => ({
    name,
    title,
    kind: 'text' as const,
    description: '',
    get: (row: (typeof rows)[number]) => row[name],
  });
  const columns = [
    column('name', 'Name'),
    column('kind', 'Type'),
    column('title', 'Title'),
    column('description', 'Description'),
  ];
  for (const line of renderTable(columns, rows, {
    hasHeaders: true,
    separator: null,
    units: 'h',
  })) {
    context.print(line);
  }
}
