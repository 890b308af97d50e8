import { ownValue } from '#shared/json/own-value.ts';
import { isEqualToAny, isLess } from '../compare-values.ts';
import { formatPrint, formatPrintf, formatPrintln } from '../format-values.ts';
import { isPrintable } from '../quote.ts';
import { CallError } from '../template-error.ts';
import {
  byteLength,
  fixed,
  isDict,
  isList,
  isTrue,
  sliceBytes,
  typeName,
  variadic,
  type Call,
  type GoFunction,
  type Value,
} from '../values.ts';

/** Functions of text/template. `and` and `or` are in the evaluator, which may skip arguments. */
export const builtins: Readonly<Record<string, GoFunction>> = {
  not: fixed(['any'], (_call, value) => !isTrue(value)),
  len: fixed(['any'], (_call, value) => lengthOf(value)),
  index: variadic(['any'], 'any', (_call, [value], keys) => keys.reduce(indexOnce, value)),
  slice: variadic(['any'], 'any', (_call, [value], bounds) => sliceOf(value, bounds)),
  print: variadic([], 'any', ({ spend }, _fixed, values) => formatPrint(values, spend)),
  println: variadic([], 'any', ({ spend }, _fixed, values) => formatPrintln(values, spend)),
  printf: variadic(['string'], 'any', ({ spend }, [format], values) =>
    formatPrintf(format, values, spend),
  ),
  html: escaper(escapeHtml),
  js: escaper(escapeJs),
  urlquery: escaper((text) =>
    encodeURIComponent(text)
      .replaceAll('%20', '+')
      .replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`),
  ),
  eq: variadic(['any'], 'any', (_call, [value], others) => isEqualToAny(value, others)),
  ne: fixed(['any', 'any'], (_call, left, right) => !isEqualToAny(left, [right])),
  lt: fixed(['any', 'any'], (_call, left, right) => isLess(left, right)),
  le: fixed(['any', 'any'], (_call, left, right) => {
    return isLess(left, right) || isEqualToAny(left, [right]);
  }),
  gt: fixed(['any', 'any'], (_call, left, right) => {
    return !isLess(left, right) && !isEqualToAny(left, [right]);
  }),
  ge: fixed(['any', 'any'], (_call, left, right) => !isLess(left, right)),
};

function lengthOf(value: Value): bigint {
  if (typeof value === 'string') return BigInt(byteLength(value));
  if (isList(value)) return BigInt(value.length);
  if (isDict(value)) return BigInt(value.size);
  throw new CallError(`a ${typeName(value)} has no length`);
}

function position(index: Value, length: number): number {
  if (typeof index !== 'bigint') throw new CallError(`a ${typeName(index)} is not an index`);
  if (index < 0n || index > BigInt(length)) throw new CallError(`index "${index}" out of range`);
  return Number(index);
}

function indexOnce(item: Value, key: Value): Value {
  if (isDict(item)) {
    if (typeof key !== 'string') throw new CallError(`a ${typeName(key)} is not a key of a map`);
    return item.get(key) ?? null;
  }
  if (typeof item === 'string') {
    const bytes = Buffer.from(item);
    return BigInt(bytes.readUInt8(positionBelow(key, bytes.length)));
  }
  if (!isList(item)) throw new CallError(`a ${typeName(item)} cannot be indexed`);
  return item[positionBelow(key, item.length)] ?? null;
}

function positionBelow(index: Value, length: number): number {
  const at = position(index, length);
  if (at === length) throw new CallError(`index "${at}" out of range`);
  return at;
}

function sliceOf(item: Value, bounds: readonly Value[]): Value {
  if (typeof item !== 'string' && !isList(item))
    throw new CallError(`a ${typeName(item)} cannot be sliced`);
  const length = typeof item === 'string' ? byteLength(item) : item.length;
  if (bounds.length > (isList(item) ? 3 : 2)) throw new CallError('a slice has too many bounds');
  const [start = 0, end = length, capacity = length] = bounds.map((bound) =>
    position(bound, length),
  );
  if (start > end || end > capacity) throw new CallError('a slice ends before it begins');
  return typeof item === 'string' ? sliceBytes(item, start, end) : item.slice(start, end);
}

function escaper(escape: (text: string) => string): GoFunction {
  return variadic([], 'any', ({ spend }: Call, _fixed, values) => {
    const [only] = values;
    const text =
      values.length === 1 && typeof only === 'string'
        ? only
        : formatPrint(
            values.map((value) => value ?? '<no value>'),
            spend,
          );
    spend(text.length >> 1);
    return escape(text);
  });
}

const HTML: Readonly<Record<string, string>> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\uFFFD',
};

function escapeHtml(text: string): string {
  return text.replace(/["'&<>\0]/g, (each) => ownValue(HTML, each) ?? each);
}

function escapeJs(text: string): string {
  return [...text]
    .map((each) => {
      if (`\\'"`.includes(each)) return `\\${each}`;
      const code = each.codePointAt(0) ?? 0;
      const isPlain = code >= 0x20 && !'<>&='.includes(each) && isPrintable(each);
      return isPlain ? each : `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
    })
    .join('');
}
