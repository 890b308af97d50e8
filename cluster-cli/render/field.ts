export type FieldValue = string | number | boolean | null | readonly (string | number)[];

export type FieldKind = 'text' | 'number' | 'size' | 'time' | 'boolean' | 'list';

/** A column of a list, with Ganeti's name and title if it has the column. */
export interface Field<T> {
  readonly name: string;
  readonly title: string;
  /** `size` is in MiB, `time` in milliseconds since the epoch. Null is "not available". */
  readonly kind: FieldKind;
  readonly description: string;
  readonly get: (item: T) => FieldValue;
}

type MakeField<T, Part> = (
  name: string,
  title: string,
  description: string,
  /** Returns the value; undefined is "not available" too. */
  get: (part: Part) => FieldValue | undefined,
) => Field<T>;
type MakeFields<T, Part> = Readonly<Record<FieldKind, MakeField<T, Part>>>;

/** Returns the constructors of columns, by kind. */
export function fieldsOf<T>(): MakeFields<T, T> {
  return fieldsOfPart((item: T) => item);
}

/**
 * Returns constructors for columns of a part that only some items have. Without the part, the value
 * is not available.
 */
export function fieldsOfPart<T, Part>(partOf: (item: T) => Part | undefined): MakeFields<T, Part> {
  const make =
    (kind: FieldKind): MakeField<T, Part> =>
    (name, title, description, get) => ({
      ...{ name, title, kind, description },
      get: (item) => {
        const part = partOf(item);
        return part === undefined ? null : (get(part) ?? null);
      },
    });
  return {
    text: make('text'),
    number: make('number'),
    size: make('size'),
    time: make('time'),
    boolean: make('boolean'),
    list: make('list'),
  };
}
