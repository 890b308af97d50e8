import { isDeepStrictEqual } from 'node:util';
import { sanitizeLine } from './sanitize.ts';

/** An indented text: `- key: value` with children below. */
export interface OutlineEntry {
  readonly key: string;
  readonly value?: string | number | boolean | null;
  readonly children?: readonly OutlineEntry[];
  /** Omitted from a short outline. */
  readonly isMore?: boolean;
}

/** Returns the entries of a short outline. */
export function shorten(entries: readonly OutlineEntry[]): readonly OutlineEntry[] {
  return entries
    .filter(({ isMore }) => isMore !== true)
    .map((entry) => (entry.children ? { ...entry, children: shorten(entry.children) } : entry));
}

/**
 * Returns entries with the present value of each key, and the value after the next start if it
 * differs. A short outline includes differing entries.
 */
export function mergeOutlines(
  now: readonly OutlineEntry[],
  next: readonly OutlineEntry[],
): readonly OutlineEntry[] {
  return [
    ...next.map((entry, index) => mergeEntry(entry, findEntry(now, next, index), entry)),
    ...now.flatMap((entry, index) =>
      findEntry(next, now, index) === undefined ? [mergeEntry(entry, entry, undefined)] : [],
    ),
  ];
}

/**
 * Finds the matching entry. Several entries of one key, such as host keys, match in their order.
 */
function findEntry(
  entries: readonly OutlineEntry[],
  others: readonly OutlineEntry[],
  index: number,
): OutlineEntry | undefined {
  const key = others[index]?.key;
  const count = others.slice(0, index).filter((other) => other.key === key).length;
  return entries.filter((entry) => entry.key === key)[count];
}

/** @param entry the later one of both that exists */
function mergeEntry(
  entry: OutlineEntry,
  now: OutlineEntry | undefined,
  next: OutlineEntry | undefined,
): OutlineEntry {
  if (isDeepStrictEqual(now, next)) return entry;
  const value = mergeValues(now, next);
  const children = mergeOutlines(now?.children ?? [], next?.children ?? []);
  return {
    key: entry.key,
    ...(value !== undefined && { value }),
    ...(children.length > 0 && { children }),
  };
}

function mergeValues(
  now: OutlineEntry | undefined,
  next: OutlineEntry | undefined,
): OutlineEntry['value'] {
  const hasNone = now?.value === undefined && next?.value === undefined;
  const isSame = now !== undefined && next !== undefined && now.value === next.value;
  if (hasNone || isSame) return next?.value;
  return `${formatState(now)}; after the next start: ${formatState(next)}`;
}

function formatState(entry: OutlineEntry | undefined): string {
  return entry?.value === undefined ? 'none' : formatOutlineValue(entry.value);
}

/**
 * Renders entries as Ganeti's info commands do: two spaces a level, values on the line of their
 * key, `-` for no value.
 */
export function renderOutline(entries: readonly OutlineEntry[], level = 0): readonly string[] {
  const indent = '  '.repeat(level);
  return entries.flatMap(({ key, value, children }) => {
    const isEmpty = value === undefined && (children ?? []).length === 0;
    const shown = value === undefined && !isEmpty ? '' : ` ${formatOutlineValue(value ?? null)}`;
    return [`${indent}${sanitizeLine(key)}:${shown}`, ...renderOutline(children ?? [], level + 1)];
  });
}

function formatOutlineValue(value: string | number | boolean | null): string {
  if (value === null || value === '') return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return sanitizeLine(String(value));
}
