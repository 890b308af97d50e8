import { AppError } from '#shared/errors/app-error.ts';
import { duplicateKey, type KeyValue, parseKeyValues } from './key-values.ts';
import type { ValueSource } from './value-source.ts';

export type ParameterVisibility = 'public' | 'private' | 'secret';

export interface ListOption {
  /** The option as the user writes it: `--os-parameters-secret`. */
  readonly option: string;
  /** The value of each occurrence of the option. */
  readonly texts: readonly string[];
}

/** `null` unsets the stored value. */
export type ParameterChanges = Record<string, string | null>;

export interface ReadParameters {
  readonly values: ParameterChanges;
  /** Keys whose value is on the command line itself. */
  readonly typedKeys: readonly string[];
  /** Elements without a value: `key` and `no_key`. */
  readonly flagCount: number;
}

/**
 * Reads all occurrences of one list option, including files. `-O @FILE` reads the list itself from
 * a file, where a newline may replace a comma. Flags become Ganeti's texts True and False.
 * @throws AppError USAGE, FILE_UNREADABLE, VALIDATION
 */
export function readParameters(given: ListOption, source: ValueSource): ReadParameters {
  const values = new Map<string, string | null>();
  const typedKeys: string[] = [];
  let flagCount = 0;
  for (const text of given.texts) {
    const isFile = text.startsWith('@');
    for (const { key, value } of parseKeyValues(given.option, listText(given, text, source))) {
      if (values.has(key)) throw duplicateKey(key, given.option);
      values.set(key, valueOf(`${given.option} ${key}`, value, source));
      if (value.kind === 'flag') flagCount += 1;
      if (!isFile && value.kind === 'text') typedKeys.push(key);
    }
  }
  return { values: Object.fromEntries(values), typedKeys, flagCount };
}

function listText(given: ListOption, text: string, source: ValueSource): string {
  if (!text.startsWith('@')) return text;
  return source
    .readText(given.option, text.slice(1))
    .split('\n')
    .filter((line) => line.trim() !== '')
    .join(',');
}

function valueOf(option: string, value: KeyValue['value'], source: ValueSource): string | null {
  switch (value.kind) {
    case 'text':
      return value.text;
    case 'flag':
      return value.isSet ? 'True' : 'False';
    case 'unset':
      return null;
    case 'file':
      return source.readText(option, value.path);
  }
}

/** Removes unset keys, for a request without stored values. */
export function withoutUnset<T extends object>(
  changes: T,
): { [Key in keyof T]: Exclude<T[Key], null> } {
  const entries = Object.entries(changes).filter(([, value]) => value !== null);
  // fromEntries returns any. The entries have the same keys, without null values.
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], null> };
}

/**
 * Refuses a parameter in two visibilities, in Ganeti's words.
 * @throws AppError DUPLICATE_OS_PARAMETER, which names parameters and never their values.
 */
export function refuseSharedNames(
  sets: Readonly<Record<ParameterVisibility, Readonly<ParameterChanges>>>,
): void {
  const visibilities = new Map<string, string[]>();
  for (const visibility of ['public', 'private', 'secret'] as const) {
    for (const name of Object.keys(sets[visibility])) {
      visibilities.set(name, [...(visibilities.get(name) ?? []), visibility]);
    }
  }
  const shared = [...visibilities].filter(([, places]) => places.length > 1);
  if (shared.length === 0) return;
  const names = shared.map(([name, places]) => `'${name}' is ${places.join(' and ')}`).join(', ');
  throw new AppError(
    'DUPLICATE_OS_PARAMETER',
    `Cannot assign multiple values to OS parameters. ${names}; values are withheld`,
    {
      hint: 'Give each parameter in one of --os-parameters, --os-parameters-private and --os-parameters-secret',
      details: { names: shared.map(([name]) => name) },
    },
  );
}
