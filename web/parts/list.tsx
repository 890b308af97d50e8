import type { ComponentChildren, JSX } from 'preact';
import { Text } from './text.tsx';

interface ListColumn<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Hidden on narrow screens. */
  readonly isWide?: boolean;
}

interface ListProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly ListColumn<Row>[];
  readonly empty: string;
}

/** A table of some rows, whose heights may differ. */
export function List<Row>({ label, rows, keyOf, columns, empty }: ListProps<Row>): JSX.Element {
  if (rows === undefined) return <p class="soft">Loading …</p>;
  if (rows.length === 0) return <p class="panel soft">{empty}</p>;
  return (
    <section class="panel scroll">
      <table class="plain" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ title, isWide }) => (
              <th key={title} scope="col" class={isWide ? 'wide' : undefined}>
                {title === 'Actions' ? <span class="unseen">Actions</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isWide }) => (
                <td key={title} class={isWide ? 'wide' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Shows names separated by commas, or a word for none. */
export function Names({
  of,
  none = 'none',
}: {
  readonly of: readonly string[];
  readonly none?: string;
}): JSX.Element {
  if (of.length === 0) return <span class="soft">{none}</span>;
  return <Text>{of.join(', ')}</Text>;
}
