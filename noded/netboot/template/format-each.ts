import { formatFloat } from './format-numbers.ts';
import { CallError } from './template-error.ts';
import { isDict, isList, sortedKeys, Struct, type Value } from './values.ts';

/** Depth limit of nested values. No document in a parameter is as deep. */
const MAX_DEPTH = 200;
export const MAX_TEXT_LENGTH = 1024 * 1024;

export type Spend = (steps: number) => void;

/** Formats a value as Go's %v, with the verb's own format for the leaves of lists and maps. */
export function formatEach(
  value: Value,
  spend: Spend,
  leaf: (value: Exclude<Value, object>) => string,
  depth = 0,
): string {
  spend(1);
  if (depth > MAX_DEPTH) throw new CallError('a value is nested too deeply to be printed');
  // Within lists and maps, no verb and no width changes it.
  if (value === null && depth > 0) return '<nil>';
  if (isList(value))
    return `[${value.map((part) => formatEach(part, spend, leaf, depth + 1)).join(' ')}]`;
  if (isDict(value)) {
    const parts = sortedKeys(value, spend).map(
      (key) => `${leaf(key)}:${formatEach(value.get(key) ?? null, spend, leaf, depth + 1)}`,
    );
    return `map[${parts.join(' ')}]`;
  }
  if (value instanceof Struct) throw new CallError(`a ${value.typeName} cannot be printed`);
  const text = leaf(value);
  spend(text.length >> 8);
  return text;
}

export function formatPlain(value: Exclude<Value, object> | null): string {
  if (value === null) return '<nil>';
  return typeof value === 'number' ? formatFloat(value, 'g', -1) : String(value);
}
