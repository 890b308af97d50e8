import { sanitizeLine } from './sanitize.ts';

/** An indented text: `- key: value` with children below. */
export interface OutlineEntry {
  readonly key: string;
  readonly value?: string | number | boolean | null;
  readonly children?: readonly OutlineEntry[];
  /** Left out of a short outline. */
  readonly isMore?: boolean;
}

/** Returns the entries of a short outline. */
export function shorten(entries: readonly OutlineEntry[]): readonly OutlineEntry[] {
  return entries
    .filter(({ isMore }) => isMore !== true)
    .map((entry) => (entry.children ? { ...entry, children: shorten(entry.children) } : entry));
}

/**
 * Renders entries as Ganeti's info commands do: two spaces a level, values on the line of their
 * key, `-` where there is none.
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
