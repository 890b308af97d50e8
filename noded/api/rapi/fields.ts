import { ownValue } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * A field as Ganeti's queries describe it, with a function that returns its value as plain JSON.
 */
export interface Field<T> {
  readonly title: string;
  readonly kind: 'text' | 'bool' | 'number' | 'unit' | 'timestamp' | 'other';
  readonly doc: string;
  readonly of: (item: T) => unknown;
}

type MakeField<T, Part> = (title: string, doc: string, of: (part: Part) => unknown) => Field<T>;
type MakeFields<T, Part> = Readonly<Record<Field<T>['kind'], MakeField<T, Part>>>;

/** Returns functions that make fields of each kind; an undefined value becomes null. */
export function fieldsOf<T>(): MakeFields<T, T> {
  return fieldsOfPart((item: T) => item);
}

/** Returns such functions for fields of an optional part; null without the part. */
export function fieldsOfPart<T, Part>(partOf: (item: T) => Part | null): MakeFields<T, Part> {
  const make =
    (kind: Field<T>['kind']): MakeField<T, Part> =>
    (title, doc, of) => ({
      ...{ title, kind, doc },
      of: (item) => {
        const part = partOf(item);
        return part === null ? null : (of(part) ?? null);
      },
    });
  return {
    text: make('text'),
    bool: make('bool'),
    number: make('number'),
    unit: make('unit'),
    timestamp: make('timestamp'),
    other: make('other'),
  };
}

/** Fields by name. One table serves lists, single resources and queries. */
export type Fields<T> = Readonly<Record<string, Field<T>>>;

/** Returns a field; undefined if it does not exist. */
export function fieldOf<T>(fields: Fields<T>, name: string): Field<T> | undefined {
  return ownValue(fields, name);
}

/** Returns the named fields of an item, or all fields without names. */
export function pickFields<T>(
  fields: Fields<T>,
  item: T,
  names: readonly string[] = Object.keys(fields),
): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, fieldOf(fields, name)?.of(item) ?? null]));
}

/** Returns seconds since the epoch, as in Ganeti's ctime and mtime. */
export function toSeconds(ms: number): number {
  return ms / 1000;
}

/** Returns Ganeti's timestamp of a job: seconds and microseconds. */
export function toTimestamp(ms: number | null): readonly [number, number] | null {
  if (ms === null) return null;
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1000)];
}

export function toMiB(bytes: number): number {
  return Math.floor(bytes / MIB);
}
