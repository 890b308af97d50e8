import { CallError } from './template-error.ts';
import { isDict, isList, sortedKeys, typeName, type ArgumentType, type Value } from './values.ts';

/** Returns the steps for reading a value: one per 64 characters or 4 items. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length >> 6;
  if (isList(value)) return value.length >> 2;
  return isDict(value) ? value.size >> 2 : 0;
}

export function fits(value: Value, type: ArgumentType): boolean {
  switch (type) {
    case 'any':
      return true;
    case 'string':
      return typeof value === 'string';
    case 'int':
      return typeof value === 'bigint';
    case 'float':
      return typeof value === 'number';
    case 'bool':
      return typeof value === 'boolean';
    case 'dict':
      return isDict(value);
  }
}

/** Returns the items of a range with their keys; for a number, the numbers below it. */
export function itemsOf(
  value: Value,
  spend: (steps: number) => void,
): Iterable<readonly [Value, Value]> {
  if (value === null) return [];
  if (isList(value)) return value.map((item, index) => [BigInt(index), item] as const);
  if (isDict(value))
    return sortedKeys(value, spend).map((key) => [key, value.get(key) ?? null] as const);
  if (typeof value === 'bigint') return numbersBelow(value);
  throw new CallError(`range cannot iterate over a ${typeName(value)}`);
}

function* numbersBelow(end: bigint): Generator<readonly [Value, Value]> {
  for (let number = 0n; number < end; number += 1n) yield [number, number];
}
