import { AppError } from '#shared/errors/app-error.ts';
import type { Field, FieldValue } from './field.ts';
import { compareNaturally, type NaturalText, toNaturalText } from './natural-order.ts';
import { suggest } from '#shared/errors/suggest.ts';

/** The columns of a list, and its default columns. */
export interface FieldTable<T> {
  /** Some names end in `/N`: one column for each index. */
  readonly fields: readonly Field<T>[];
  readonly indexed?: readonly IndexedField<T>[];
  readonly defaults: readonly string[];
  /** The program whose `list-fields` shows them; absent: no such command. */
  readonly program?: string;
}

/** Columns by index: `disk.size/0`, `nic.mac/1`. */
interface IndexedField<T> {
  readonly prefix: string;
  readonly description: string;
  readonly at: (index: number) => Field<T>;
}

/**
 * Parses `-o name,status`, or `-o +uuid` for additional columns.
 * @throws AppError USAGE for an unknown field
 */
export function selectFields<T>(
  table: FieldTable<T>,
  output: string | undefined,
): readonly Field<T>[] {
  return parseFieldNames(table.defaults, output).map((name) => findField(table, name));
}

function parseFieldNames(
  defaults: readonly string[],
  output: string | undefined,
): readonly string[] {
  if (output === undefined || output === '') return defaults;
  if (output.startsWith('+')) return [...defaults, ...output.slice(1).split(',')];
  return output.split(',');
}

/** @throws AppError USAGE */
export function findField<T>(table: FieldTable<T>, name: string): Field<T> {
  const field = table.fields.find((each) => each.name === name);
  if (field) return field;
  const match = /^(.+)\/(\d{1,3})$/.exec(name);
  const indexed = match && table.indexed?.find(({ prefix }) => prefix === match[1]);
  if (match && indexed) return indexed.at(Number(match[2]));
  const names = table.fields.map((each) => each.name);
  const near = suggest(name, names);
  throw new AppError('USAGE', `unknown field '${name}'`, {
    hint: near ? `Did you mean ${near}?` : hintOf(table.program, names),
    details: { field: name },
  });
}

function hintOf(program: string | undefined, names: readonly string[]): string {
  return program === undefined ? `Fields: ${names.join(', ')}` : `${program} list-fields`;
}

/** An order of items by their extracted keys. */
export interface ItemOrder<T> {
  readonly keysOf: (item: T) => readonly Comparable[];
  readonly compare: (a: readonly Comparable[], b: readonly Comparable[]) => number;
}

/**
 * Parses `--sort FIELD,-FIELD2` (`-` reverses). Numbers in text sort naturally: web2 before web10.
 * @throws AppError USAGE for an unknown field
 */
export function parseSort<T>(table: FieldTable<T>, sort: string): ItemOrder<T> {
  const keys = sort.split(',').filter((key) => key !== '');
  const orders = keys.map((key) => {
    const isReversed = key.startsWith('-');
    return { field: findField(table, isReversed ? key.slice(1) : key), sign: isReversed ? -1 : 1 };
  });
  const signs = orders.map(({ sign }) => sign);
  return {
    keysOf: (item) => orders.map(({ field }) => toComparable(field.get(item))),
    compare: (a, b) => {
      // This runs for each pair; an iterator would take longer than the comparison.
      for (let at = 0; at < signs.length; at += 1) {
        const result = compareValues(a[at] ?? null, b[at] ?? null);
        if (result !== 0) return result * (signs[at] ?? 1);
      }
      return 0;
    },
  };
}

/** Sort key of a value. */
export type Comparable = number | NaturalText | null;

function toComparable(value: FieldValue): Comparable {
  return value === null || typeof value === 'number' ? value : toNaturalText(String(value));
}

/** Compares values. Unavailable ones come first. */
function compareValues(a: Comparable, b: Comparable): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return compareNaturally(toText(a), toText(b));
}

function toText(value: number | NaturalText): NaturalText {
  return typeof value === 'number' ? toNaturalText(String(value)) : value;
}
