import { CallError } from './template-error.ts';
import { compareText, isDict, isList, typeName, type Value } from './values.ts';

/** Implements Go's eq: equal to one of the others. @throws CallError for incomparable types */
export function isEqualToAny(value: Value, others: readonly Value[]): boolean {
  if (others.length === 0) throw new CallError('no value to compare with');
  // Stops at the first equal value, so that incomparable values after it do not matter.
  return others.some((other) => isEqual(value, other));
}

function isEqual(left: Value, right: Value): boolean {
  if (left === null || right === null) return left === right;
  if (typeof left === 'object' || typeof right === 'object' || typeof left !== typeof right)
    throw incompatible(left, right);
  return left === right;
}

/** Implements Go's lt. @throws CallError */
export function isLess(left: Value, right: Value): boolean {
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right) < 0;
  if (typeof left === 'bigint' && typeof right === 'bigint') return left < right;
  if (typeof left === 'number' && typeof right === 'number') return left < right;
  throw incompatible(left, right);
}

function incompatible(left: Value, right: Value): CallError {
  return new CallError(`a ${typeName(left)} cannot be compared with a ${typeName(right)}`);
}

/** Implements Go's reflect.DeepEqual. @param spend takes a step for each part */
export function isDeepEqual(left: Value, right: Value, spend: (steps: number) => void): boolean {
  spend(1);
  if (isList(left) && isList(right))
    return (
      left.length === right.length &&
      left.every((part, index) => isDeepEqual(part, right[index] ?? null, spend))
    );
  if (isDict(left) && isDict(right))
    return (
      left.size === right.size &&
      [...left].every(([key, part]) => {
        return right.has(key) && isDeepEqual(part, right.get(key) ?? null, spend);
      })
    );
  if (typeof left === 'string') spend(left.length >> 6);
  return left === right;
}
