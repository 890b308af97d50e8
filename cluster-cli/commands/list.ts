import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../terminal/context.ts';
import { globToRegex, parseFilter } from '../render/filter.ts';
import type { SizeUnit } from '../render/format.ts';
import {
  type Comparable,
  type FieldTable,
  findField,
  parseSort,
  selectFields,
} from '../render/select.ts';
import { alignRows, formatCells, renderTable } from '../render/table.ts';
import { option, type OptionMaker } from '../completion/command.ts';

export interface ListOptions {
  readonly output?: string;
  /** commander's name of `--no-headers`, inverted. */
  readonly headers: boolean;
  readonly separator?: string;
  readonly units?: SizeUnit;
  readonly filter?: string;
  readonly sort?: string;
  readonly json?: boolean;
}

/** Returns Ganeti's options for every list. */
export function listOptions(): readonly OptionMaker[] {
  const group = 'Output:';
  return [
    option(
      '-o, --output <fields>',
      'Fields to show, separated by commas; +FIELDS adds to the default',
      {
        group,
      },
    ),
    option('--no-headers', 'Print no line of titles', { group }),
    option('--separator <text>', 'Print this between fields, without alignment', { group }),
    option(
      '--units <unit>',
      'Unit of sizes: h with unit, m MiB, g GiB, t TiB (default h; with --separator m)',
      {
        group,
        choices: ['h', 'm', 'g', 't'],
      },
    ),
    option('-F, --filter <expression>', 'Show matching items only, as \'status == "running"\'', {
      group,
    }),
    option('--sort <fields>', 'Sort by these fields; -FIELD sorts in reverse', { group }),
    option('--json', 'Print whole records as a JSON array', { group }),
  ];
}

/** Lines per write: single writes would take longer than the rest of a list. */
const AT_ONCE = 1000;

export interface ListedKind<T> {
  readonly table: FieldTable<T>;
  /** Key that the command's arguments select by. */
  readonly nameOf: (item: T) => string;
  readonly names: readonly string[];
  readonly notFound: (name: string, known: readonly string[]) => AppError;
  /** Value that `--json` prints of an item. */
  readonly toJson?: (item: T) => unknown;
  readonly defaultSort: string;
}

export interface Listing<T> extends ListedKind<T> {
  readonly items: readonly T[];
}

/**
 * Selects, filters, sorts and prints.
 * @throws AppError USAGE, or the error of notFound
 */
export function printList<T>(context: Context, listing: Listing<T>, options: ListOptions): void {
  const list = openList(context, listing, options);
  list.add(listing.items);
  list.print();
}

/** A list that receives its items one by one. It keeps whole items only for `--json`. */
export interface OpenList<T> {
  add(items: readonly T[]): void;
  /** @throws AppError the error of notFound */
  print(): void;
}

/** The parts of an item that are needed after the last one arrived. */
interface Row {
  readonly name: string;
  readonly isKept: boolean;
  readonly keys: readonly Comparable[];
  readonly cells: readonly string[];
  /** Output of `--json`: a text takes a fraction of its object's memory. */
  readonly json: string;
}

/** @throws AppError USAGE for invalid fields and filters */
export function openList<T>(
  context: Context,
  kind: ListedKind<T>,
  options: ListOptions,
): OpenList<T> {
  const { table, nameOf, names, notFound, defaultSort } = kind;
  const fields = selectFields(table, options.output);
  const filter = options.filter === undefined ? null : parseFilter(options.filter);
  // Names on the command line keep their order, as in Ganeti.
  const isOrdered = names.length > 0 && options.sort === undefined;
  const order = parseSort(table, isOrdered ? '' : (options.sort ?? defaultSort));
  const separator = options.separator ?? null;
  const units = options.units ?? (separator === null ? 'h' : 'm');
  const isFit = (item: T): boolean =>
    filter === null || filter((name) => findField(table, name).get(item));
  const toRow = (item: T): Row => ({
    ...{ name: nameOf(item), isKept: isFit(item), keys: order.keysOf(item) },
    cells: options.json ? [] : formatCells(fields, item, units),
    json: options.json ? JSON.stringify(kind.toJson?.(item) ?? item, null, 2) : '',
  });
  const rows: Row[] = [];
  return {
    add(items) {
      for (const item of items) rows.push(toRow(item));
    },
    print() {
      const kept = selectNamed(rows, names, notFound).filter(({ isKept }) => isKept);
      const sorted = kept.sort((a, b) => order.compare(a.keys, b.keys));
      if (options.json) {
        for (const text of jsonArray(sorted.map(({ json }) => json))) context.print(text);
        return;
      }
      const cells = sorted.map((row) => row.cells);
      const lines = alignRows(fields, cells, { hasHeaders: options.headers, separator });
      for (let at = 0; at < lines.length; at += AT_ONCE)
        context.print(lines.slice(at, at + AT_ONCE).join('\n'));
    },
  };
}

function selectNamed(
  rows: readonly Row[],
  names: readonly string[],
  notFound: ListedKind<unknown>['notFound'],
): readonly Row[] {
  if (names.length === 0) return rows;
  return names.flatMap((name) => {
    const regex = /[*?]/.test(name) ? globToRegex(name) : null;
    const matching = (fits: (full: string) => boolean): readonly Row[] =>
      rows.filter((row) => fits(row.name));
    if (regex) return matching((full) => regex.test(full));
    const found = matching((full) => full === name);
    // The first labels of a name are enough if they are unique, as in Ganeti.
    const begun = found.length > 0 ? found : matching((full) => full.startsWith(`${name}.`));
    if (begun.length === 0 || (found.length === 0 && begun.length > 1)) {
      const known = rows.map((row) => row.name);
      throw notFound(name, known);
    }
    return begun;
  });
}

/**
 * Yields lines of an array in the format of `JSON.stringify`. The text of ten thousand instances
 * would exceed the maximum length of a string.
 */
function* jsonArray(items: readonly string[]): Generator<string> {
  yield items.length === 0 ? '[]' : '[';
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const texts = items.slice(at, at + AT_ONCE).map((text) => `  ${text.replaceAll('\n', '\n  ')}`);
    yield texts.join(',\n') + (at + AT_ONCE < items.length ? ',' : '');
  }
  if (items.length > 0) yield ']';
}

/** Prints name, title and description of each field, as Ganeti's `list-fields`. */
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
