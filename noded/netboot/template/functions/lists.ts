import { isDeepEqual } from '../compare-values.ts';
import { CallError } from '../template-error.ts';
import { fixed, isTrue, sortTexts, variadic, type GoFunction, type List } from '../values.ts';
import { listOf, toInt, toText, toTexts, wrapInt } from './convert.ts';

const MAX_ITEMS = 100_000;

const ofList = (name: string, change: (list: List) => List): GoFunction =>
  fixed(['any'], ({ spend }, value) => {
    const list = listOf(value, name);
    spend(list.length);
    return change(list);
  });
const first = fixed(['any'], (_call, value) => listOf(value, 'first')[0] ?? null);
const last = fixed(['any'], (_call, value) => listOf(value, 'last').at(-1) ?? null);
const rest = ofList('rest', (list) => list.slice(1));
const initial = ofList('initial', (list) => list.slice(0, -1));
const append = fixed(['any', 'any'], (_call, list, item) => [...listOf(list, 'append'), item]);
const prepend = fixed(['any', 'any'], (_call, list, item) => [item, ...listOf(list, 'prepend')]);
const reverse = ofList('reverse', (list) => list.toReversed());
const compact = ofList('compact', (list) => list.filter(isTrue));
const makeList = variadic([], 'any', (_call, _fixed, items) => items);
const uniq = fixed(['any'], ({ spend }, value) =>
  listOf(value, 'uniq').reduce<List>((kept, item) => {
    return kept.some((each) => isDeepEqual(each, item, spend)) ? kept : [...kept, item];
  }, []),
);
const without = variadic(['any'], 'any', ({ spend }, [value], omitted) =>
  listOf(value, 'without').filter(
    (item) => !omitted.some((each) => isDeepEqual(each, item, spend)),
  ),
);
const has = fixed(['any', 'any'], ({ spend }, needle, haystack) => {
  if (haystack === null) return false;
  return listOf(haystack, 'has').some((item) => isDeepEqual(needle, item, spend));
});
const slice = variadic(['any'], 'any', (_call, [value], bounds) => {
  const list = listOf(value, 'slice');
  if (list.length === 0) return null;
  const start = bounds.length > 0 ? Number(toInt(bounds[0] ?? null)) : 0;
  const end = bounds.length > 1 ? Number(toInt(bounds[1] ?? null)) : list.length;
  if (start < 0 || end > list.length || start > end)
    throw new CallError('slice: bounds out of range');
  return list.slice(start, end);
});
const chunk = fixed(['int', 'any'], ({ spend }, size, value) => {
  const list = listOf(value, 'chunk');
  if (size <= 0n) throw new CallError('chunk: the size is below one');
  spend(list.length);
  const step = Number(size);
  return Array.from({ length: Math.ceil(list.length / step) }, (_none, index) =>
    list.slice(index * step, (index + 1) * step),
  );
});
const concat = variadic([], 'any', ({ spend }, _fixed, lists) => {
  const all = lists.flatMap((list) => listOf(list, 'concat'));
  spend(all.length);
  return all;
});

export const listFunctions: Readonly<Record<string, GoFunction>> = {
  append,
  chunk,
  compact,
  concat,
  first,
  has,
  initial,
  last,
  list: makeList,
  mustAppend: append,
  mustChunk: chunk,
  mustCompact: compact,
  mustFirst: first,
  mustHas: has,
  mustInitial: initial,
  mustLast: last,
  mustPrepend: prepend,
  mustPush: append,
  mustRest: rest,
  mustReverse: reverse,
  mustSlice: slice,
  mustUniq: uniq,
  mustWithout: without,
  prepend,
  push: append,
  rest,
  reverse,
  seq: variadic([], 'int', ({ spend }, _fixed, bounds) => sequence(spend, bounds)),
  slice,
  sortAlpha: fixed(['any'], ({ spend }, value) => {
    const texts = Array.isArray(value) ? toTexts(value, spend) : [toText(value, spend)];
    return sortTexts(texts, spend);
  }),
  tuple: makeList,
  uniq,
  until: fixed(['int'], ({ spend }, count) => numbers(spend, 0n, count, count < 0n ? -1n : 1n)),
  untilStep: fixed(['int', 'int', 'int'], ({ spend }, start, stop, step) =>
    numbers(spend, start, stop, step),
  ),
  without,
};

type Spend = (steps: number) => void;

function numbers(spend: Spend, start: bigint, stop: bigint, step: bigint): readonly bigint[] {
  const isUp = stop >= start;
  if (isUp ? step <= 0n : step >= 0n) return [];
  const distance = isUp ? stop - start : start - stop;
  const stride = isUp ? step : -step;
  const count = (distance + stride - 1n) / stride;
  if (count > MAX_ITEMS) throw new CallError(`a list has more than ${MAX_ITEMS} items`);
  spend(Number(count));
  return Array.from({ length: Number(count) }, (_none, index) =>
    wrapInt(start + BigInt(index) * step),
  );
}

/** Formats numbers as seq(1): to an end, from one, by a step. */
function sequence(spend: Spend, bounds: readonly bigint[]): string {
  const [a = 1n, b = 1n, c = 1n] = bounds;
  if (bounds.length === 0 || bounds.length > 3) return '';
  const [start, end] = bounds.length === 1 ? [1n, a] : bounds.length === 2 ? [a, b] : [a, c];
  const direction = end < start ? -1n : 1n;
  const step = bounds.length === 3 ? b : direction;
  if (bounds.length === 3 && direction < 0n && step > 0n) return '';
  return numbers(spend, start, end + direction, step).join(' ');
}
