import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type SortOrder, targetOf } from './rows.ts';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are set to the right. */
  readonly isNumber?: boolean;
  /** Pixels. Columns without a width share the rest. */
  readonly width?: number;
  /** Hidden on narrow screens. */
  readonly isWide?: boolean;
  /** Absent: the column cannot be sorted by. */
  readonly compare?: (a: Row, b: Row) => number;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  readonly sort: SortOrder;
  readonly onSort: (order: SortOrder) => void;
  /** Shown in place of rows. */
  readonly empty: ComponentChildren;
}

/** Pixels; the style sheet has the same height. */
const ROW_HEIGHT = 36;
/** Rows beyond both edges of the screen, for fast scrolling and the focus. */
const MARGIN_ROWS = 12;

/**
 * Shows rows of equal height, of which only the visible ones are elements. The rows scroll with
 * the page. Arrow keys, Home and End move the focus between the links of the rows.
 */
export function VirtualTable<Row>(props: TableProps<Row>): JSX.Element {
  const { label, columns, rows, keyOf, sort, onSort, empty } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const first = useSignal(0);
  const count = useSignal(60);
  const measure = (): void => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    const from = Math.max(0, Math.floor(-top / ROW_HEIGHT) - MARGIN_ROWS);
    // Steps, so that not every pixel renders the rows.
    first.value = from - (from % MARGIN_ROWS);
    count.value = Math.ceil(innerHeight / ROW_HEIGHT) + 3 * MARGIN_ROWS;
  };
  useEffect(() => {
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, []);
  const from = Math.max(0, Math.min(first.value, rows.length - count.value));
  const shown = rows.slice(from, from + count.value);
  const after = rows.length - from - shown.length;
  const move = (event: KeyboardEvent): void => {
    const current = (event.target as HTMLElement).closest('tr');
    const index = Number(current?.dataset['index'] ?? NaN);
    const to = targetOf(event.key, index, rows.length);
    if (to === undefined || body.current === null) return;
    event.preventDefault();
    focusRow(body.current, to);
  };
  return (
    <table class="list" aria-label={label} aria-rowcount={rows.length + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {columns.map((column) => (
            <Heading key={column.key} column={column} sort={sort} onSort={onSort} />
          ))}
        </tr>
      </thead>
      <tbody ref={body} onKeyDown={move}>
        {from > 0 && <Spacer rows={from} columns={columns.length} />}
        {shown.map((row, offset) => (
          <tr key={keyOf(row)} aria-rowindex={from + offset + 2} data-index={from + offset}>
            {columns.map((column) => (
              <td key={column.key} class={classOf(column)}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
        {after > 0 && <Spacer rows={after} columns={columns.length} />}
        {rows.length === 0 && (
          <tr class="empty">
            <td colSpan={columns.length}>{empty}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function classOf<Row>({ isNumber, isWide }: Column<Row>): string {
  return [isNumber && 'number', isWide && 'wide'].filter(Boolean).join(' ');
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly sort: SortOrder;
  readonly onSort: (order: SortOrder) => void;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>): JSX.Element {
  const { key, title, compare, width } = column;
  const direction = sort === key ? 'ascending' : sort === `-${key}` ? 'descending' : 'none';
  return (
    <th
      scope="col"
      class={classOf(column)}
      style={width === undefined ? undefined : { width: `${width}px` }}
      aria-sort={compare ? direction : undefined}
    >
      {compare === undefined ? (
        title
      ) : (
        <button
          type="button"
          class="sort"
          onClick={() => onSort(direction === 'ascending' ? `-${key}` : key)}
        >
          {title}
        </button>
      )}
    </th>
  );
}

function Spacer({
  rows,
  columns,
}: {
  readonly rows: number;
  readonly columns: number;
}): JSX.Element {
  return (
    <tr class="spacer" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW_HEIGHT}px` }} />
    </tr>
  );
}

/** Scrolls to a row, which may not be an element yet, and focuses its link. */
function focusRow(body: HTMLElement, index: number): void {
  const find = (): HTMLElement | null => body.querySelector(`tr[data-index="${index}"] a`);
  const link = find();
  if (link !== null) {
    link.focus();
    return;
  }
  const top = body.getBoundingClientRect().top + scrollY;
  scrollTo(0, top + index * ROW_HEIGHT - innerHeight / 2);
  requestAnimationFrame(() => requestAnimationFrame(() => find()?.focus()));
}
