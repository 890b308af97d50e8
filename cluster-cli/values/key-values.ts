import { AppError } from '#shared/errors/app-error.ts';

/** One `key=value` of a list option, before files are read. */
export interface KeyValue {
  readonly key: string;
  readonly value: KeyedValue;
}
export type KeyedValue =
  | { readonly kind: 'text'; readonly text: string }
  /** A bare key (true), or a key with the prefix `no_` (false). */
  | { readonly kind: 'flag'; readonly isSet: boolean }
  /** `-key`, or the value `default`: unset the stored value. */
  | { readonly kind: 'unset' }
  /** `key=@FILE`; `-` is stdin. */
  | { readonly kind: 'file'; readonly path: string };

/**
 * A character, and whether a backslash preceded it: `\@` is not a file, `\,` does not end an
 * element.
 */
interface Character {
  readonly text: string;
  readonly isEscaped: boolean;
}

/**
 * Parses Ganeti's list syntax: `key=value,key2=value2`, `\,` for a comma, `key` = true, `no_key` =
 * false, `-key` and `key=default` = unset; and our `key=@FILE`. Ganeti finds the `=` after
 * unescaping, so a key cannot contain `=`.
 * @throws AppError USAGE for an empty element, an empty key or a repeated key
 */
export function parseKeyValues(option: string, text: string): readonly KeyValue[] {
  const found = new Map<string, KeyValue>();
  if (text === '') return [];
  for (const element of splitElements(text)) {
    const parsed = parseElement(option, element);
    if (found.has(parsed.key)) throw duplicateKey(parsed.key, option);
    found.set(parsed.key, parsed);
  }
  return [...found.values()];
}

export function duplicateKey(key: string, option: string): AppError {
  return new AppError('USAGE', `Duplicate key '${key}' in option ${option}`, {
    hint: `Give ${key} once`,
    details: { key, option },
  });
}

/**
 * Splits a comma-separated list (`ganeti,ec2`), with `\,` for a comma. Empty text is an empty list.
 */
export function parseList(text: string): readonly string[] {
  return text === '' ? [] : splitElements(text).map(textOf);
}

/** Formats text values for {@link parseKeyValues}, with syntax characters escaped. */
export function formatKeyValues(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${escapeText(key)}=${escapeValue(value)}`)
    .join(',');
}

function escapeText(text: string): string {
  return text.replaceAll(/[\\,]/g, (character) => `\\${character}`);
}

function escapeValue(value: string): string {
  const escaped = escapeText(value);
  return escaped.startsWith('@') ? `\\${escaped}` : escaped;
}

function splitElements(text: string): readonly (readonly Character[])[] {
  const elements: Character[][] = [];
  let current: Character[] = [];
  const characters = [...text];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] as string; // inside the bounds of the loop
    const next = characters[at + 1];
    // As in Ganeti, a backslash at the end, or before a newline, is literal.
    if (character === '\\' && next !== undefined && next !== '\n') {
      current.push({ text: next, isEscaped: true });
      at += 1;
    } else if (character === ',') {
      elements.push(current);
      current = [];
    } else {
      current.push({ text: character, isEscaped: false });
    }
  }
  elements.push(current);
  return elements;
}

function parseElement(option: string, element: readonly Character[]): KeyValue {
  const equals = element.findIndex((character) => character.text === '=');
  if (equals === -1) return parseBareKey(option, textOf(element));
  const key = requireKey(option, textOf(element.slice(0, equals)));
  const value = element.slice(equals + 1);
  const [first] = value;
  if (first?.text === '@' && !first.isEscaped) {
    return { key, value: { kind: 'file', path: textOf(value.slice(1)) } };
  }
  const text = textOf(value);
  return { key, value: text === 'default' ? { kind: 'unset' } : { kind: 'text', text } };
}

function parseBareKey(option: string, text: string): KeyValue {
  if (text.startsWith('no_')) {
    return {
      key: requireKey(option, text.slice('no_'.length)),
      value: { kind: 'flag', isSet: false },
    };
  }
  if (text.startsWith('-')) {
    return { key: requireKey(option, text.slice(1)), value: { kind: 'unset' } };
  }
  return { key: requireKey(option, text, true), value: { kind: 'flag', isSet: true } };
}

/** Refuses invalid keys. The rest of a value after a comma looks like a key with white space. */
function requireKey(option: string, key: string, isBare = false): string {
  if (key !== '' && !(isBare ? /\s/ : /^\s/).test(key)) return key;
  const fault = key === '' ? 'an element without a key' : 'a key with white space';
  throw new AppError('USAGE', `option ${option} has ${fault}`, {
    hint: `Write key=value,key2=value2. Put a backslash before a comma inside a value, and quote the list: ${option} 'key=one\\, two'`,
  });
}

function textOf(characters: readonly Character[]): string {
  return characters.map((character) => character.text).join('');
}
