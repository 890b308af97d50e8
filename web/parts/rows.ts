/** A column's key, after a minus sign for the reverse order. */
export type SortOrder = string;

interface Sortable<Row> {
  readonly key: string;
  readonly compare?: (a: Row, b: Row) => number;
}

/** Returns the rows in an order. An unknown order leaves them as they are. Pure. */
export function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Sortable<Row>[],
  sort: SortOrder,
): readonly Row[] {
  const isReverse = sort.startsWith('-');
  const key = isReverse ? sort.slice(1) : sort;
  const compare = columns.find((column) => column.key === key)?.compare;
  if (compare === undefined) return rows;
  return rows.toSorted(isReverse ? (a, b) => compare(b, a) : compare);
}

/** Returns the row that a key leads to; undefined for other keys. Pure. */
export function targetOf(key: string, index: number, count: number): number | undefined {
  if (Number.isNaN(index)) return undefined;
  if (key === 'ArrowDown') return Math.min(index + 1, count - 1);
  if (key === 'ArrowUp') return Math.max(index - 1, 0);
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  return undefined;
}
