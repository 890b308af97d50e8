import { AppError } from '#shared/errors/app-error.ts';
import { type KeyValue, parseKeyValues } from './key-values.ts';

/** `IDENT:key=value,…`, as in `--disk 0:size=10G` and `-H kvm:accel=tcg`. */
export interface Identified {
  readonly ident: string;
  readonly values: readonly KeyValue[];
}

/** @throws AppError USAGE */
export function parseIdentified(option: string, text: string): Identified {
  const colon = text.indexOf(':');
  if (colon === -1) return { ident: text, values: [] };
  return { ident: text.slice(0, colon), values: parseKeyValues(option, text.slice(colon + 1)) };
}

/** Highest accepted index; noded has its own, lower limits. */
const MAX_INDEX = 255;

/**
 * Arranges several `N:key=value` of one option in the order of N. A missing index gets `fill`, or
 * is refused without `fill`.
 * @throws AppError USAGE for an index that is not a number, repeated or missing
 */
export function arrangeByIndex<T>(
  option: string,
  given: readonly { readonly ident: string; readonly item: T }[],
  fill?: T,
): readonly T[] {
  const byIndex = new Map<number, T>();
  for (const { ident, item } of given) {
    const index = parseIndex(option, ident);
    if (byIndex.has(index)) {
      throw new AppError('USAGE', `option ${option} is given twice for index ${index}`);
    }
    byIndex.set(index, item);
  }
  const length = Math.max(-1, ...byIndex.keys()) + 1;
  return Array.from({ length }, (_, index) => {
    const item = byIndex.get(index) ?? fill;
    if (item !== undefined) return item;
    throw new AppError('USAGE', `option ${option}: index ${index} is missing`, {
      hint: 'Number from 0 without gaps',
    });
  });
}

/** @throws AppError USAGE */
export function parseIndex(option: string, ident: string): number {
  const index = Number(ident);
  if (/^\d+$/.test(ident) && index <= MAX_INDEX) return index;
  throw new AppError('USAGE', `option ${option}: '${ident}' is not an index`, {
    hint: `Write ${option} N:key=value, for example ${option} 0:${option === '--disk' ? 'size=10G' : 'link=br0'}`,
    details: { option, value: ident },
  });
}
