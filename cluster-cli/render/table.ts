import type { Field, FieldValue } from './field.ts';
import { formatMiB, formatTime, type SizeUnit } from './format.ts';
import { sanitizeLine } from './sanitize.ts';

export interface TableOptions {
  readonly hasHeaders: boolean;
  /** Null aligns the columns. A text separates them without alignment. */
  readonly separator: string | null;
  readonly units: SizeUnit;
}

/** Ganeti's text for an unavailable value. */
const UNAVAILABLE = '-';
const NUMERIC = new Set(['number', 'size']);

/**
 * Renders a table in Ganeti's form: titles, right-aligned numbers, one space between columns, no
 * trailing space.
 */
export function renderTable<T>(
  fields: readonly Field<T>[],
  items: readonly T[],
  options: TableOptions,
): readonly string[] {
  const cells = items.map((item) => formatCells(fields, item, options.units));
  return alignRows(fields, cells, options);
}

/** Returns the cells of a row, the part of an item to keep until the widths are known. */
export function formatCells<T>(
  fields: readonly Field<T>[],
  item: T,
  units: SizeUnit,
): readonly string[] {
  return fields.map((field) => formatValue(field, field.get(item), units));
}

/** Returns the lines of {@link renderTable} from rows of cells. */
export function alignRows<T>(
  fields: readonly Field<T>[],
  cells: readonly (readonly string[])[],
  { hasHeaders, separator }: Pick<TableOptions, 'hasHeaders' | 'separator'>,
): readonly string[] {
  const rows = hasHeaders ? [fields.map((field) => field.title), ...cells] : cells;
  if (separator !== null) return rows.map((row) => row.join(separator));
  const widths = fields.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        const isNumber = NUMERIC.has(fields[column]?.kind ?? 'text');
        return isNumber ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(' ')
      .trimEnd(),
  );
}

function formatValue<T>(field: Field<T>, value: FieldValue, units: SizeUnit): string {
  if (value === null) return UNAVAILABLE;
  if (Array.isArray(value)) {
    const parts = value.map((part) =>
      field.kind === 'size' && typeof part === 'number'
        ? formatMiB(part, units)
        : sanitizeLine(String(part)),
    );
    return parts.length > 0 ? parts.join(',') : UNAVAILABLE;
  }
  if (typeof value === 'boolean') return value ? 'Y' : 'N';
  if (typeof value === 'number') {
    if (field.kind === 'size') return formatMiB(value, units);
    return field.kind === 'time' ? formatTime(value) : String(value);
  }
  return value === '' ? UNAVAILABLE : sanitizeLine(String(value));
}
