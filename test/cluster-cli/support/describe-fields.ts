import assert from 'node:assert/strict';
import type { FieldTable } from '../../../cluster-cli/render/select.ts';

/** Returns one line per column: name, title, kind and value, with a mark on default columns. */
export function describeFields<T>({ fields, defaults }: FieldTable<T>, item: T): readonly string[] {
  for (const name of defaults)
    assert.ok(
      fields.some((field) => field.name === name),
      name,
    );
  return fields.map(({ name, title, kind, get }) =>
    [defaults.includes(name) ? '*' : ' ', name, title, kind, JSON.stringify(get(item))].join(' '),
  );
}
