export type FieldValue = string | number | boolean | null | readonly (string | number)[];

export type FieldKind = 'text' | 'number' | 'size' | 'time' | 'boolean' | 'list';

/** A column of a list: Ganeti's name and title for it where Ganeti has it. */
export interface Field<T> {
  readonly name: string;
  readonly title: string;
  /** `size` is in MiB, `time` in milliseconds since the epoch. Null is "not available". */
  readonly kind: FieldKind;
  readonly description: string;
  readonly get: (item: T) => FieldValue;
}
