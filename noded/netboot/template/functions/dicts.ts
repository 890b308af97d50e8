import { isDeepEqual } from '../compare-values.ts';
import { CallError } from '../template-error.ts';
import {
  fixed,
  fromJson,
  isDict,
  isList,
  isTrue,
  sortedKeys,
  Struct,
  typeName,
  variadic,
  type Dict,
  type GoFunction,
  type Value,
} from '../values.ts';
import { toText } from './convert.ts';
import { encodeJson } from './encode-json.ts';

type Spend = (steps: number) => void;
const MAX_DEPTH = 200;

const merge = variadic(['dict'], 'dict', ({ spend }, [into], others) => {
  for (const other of others) mergeInto(spend, into, other, false, 0);
  return into;
});
const mergeOverwrite = variadic(['dict'], 'dict', ({ spend }, [into], others) => {
  for (const other of others) mergeInto(spend, into, other, true, 0);
  return into;
});
const deepCopy = fixed(['any'], ({ spend }, value) => copy(spend, value, 0));
const toJson = fixed(['any'], ({ spend }, value) =>
  encodeJson(value, spend, { escapesHtml: true }),
);
const toRawJson = fixed(['any'], ({ spend }, value) =>
  encodeJson(value, spend, { escapesHtml: false }),
);
const toPrettyJson = fixed(['any'], ({ spend }, value) =>
  encodeJson(value, spend, { escapesHtml: true, indent: '  ' }),
);
class NoJson extends CallError {}

const mustFromJson = fixed(['string'], ({ spend }, text) => {
  spend(text.length >> 2);
  try {
    return fromJson(JSON.parse(text));
  } catch {
    throw new NoJson('fromJson: not JSON');
  }
});

export const dictFunctions: Readonly<Record<string, GoFunction>> = {
  all: variadic([], 'any', (_call, _fixed, values) => values.every(isTrue)),
  any: variadic([], 'any', (_call, _fixed, values) => values.some(isTrue)),
  coalesce: variadic([], 'any', (_call, _fixed, values) => values.find(isTrue) ?? null),
  deepCopy,
  deepEqual: fixed(['any', 'any'], ({ spend }, left, right) => isDeepEqual(left, right, spend)),
  default: variadic(['any'], 'any', (_call, [otherwise], [given = null]) =>
    isTrue(given) ? given : otherwise,
  ),
  dict: variadic([], 'any', ({ spend }, _fixed, parts) => makeDict(spend, parts)),
  dig: variadic(['any', 'any', 'any'], 'any', (_call, leading, more) => dig([...leading, ...more])),
  empty: fixed(['any'], (_call, value) => !isTrue(value)),
  fromJson: fixed(['string'], (call, text) => {
    try {
      return mustFromJson.run(call, [text]);
    } catch (error) {
      if (error instanceof NoJson) return null;
      throw error;
    }
  }),
  get: fixed(['dict', 'string'], (_call, dict, key) =>
    dict.has(key) ? (dict.get(key) ?? null) : '',
  ),
  hasKey: fixed(['dict', 'string'], (_call, dict, key) => dict.has(key)),
  keys: variadic([], 'dict', ({ spend }, _fixed, dicts) =>
    dicts.flatMap((dict) => sortedKeys(dict, spend)),
  ),
  kindIs: fixed(['string', 'any'], (_call, kind, value) => kind === kindOf(value)),
  kindOf: fixed(['any'], (_call, value) => kindOf(value)),
  merge,
  mergeOverwrite,
  mustDeepCopy: deepCopy,
  mustFromJson,
  mustMerge: merge,
  mustMergeOverwrite: mergeOverwrite,
  mustToJson: toJson,
  mustToPrettyJson: toPrettyJson,
  mustToRawJson: toRawJson,
  omit: variadic(['dict'], 'string', (_call, [dict], keys) => {
    const omitted = new Set(keys);
    return new Map([...dict].filter(([key]) => !omitted.has(key)));
  }),
  pick: variadic(['dict'], 'string', (_call, [dict], keys) => {
    const picked = new Set(keys);
    return new Map([...dict].filter(([key]) => picked.has(key)));
  }),
  pluck: variadic(['string'], 'dict', (_call, [key], dicts) =>
    dicts.filter((dict) => dict.has(key)).map((dict) => dict.get(key) ?? null),
  ),
  set: fixed(['dict', 'string', 'any'], (_call, dict, key, value) => dict.set(key, value)),
  ternary: fixed(['any', 'any', 'bool'], (_call, yes, no, condition) => (condition ? yes : no)),
  toJson,
  toPrettyJson,
  toRawJson,
  typeIs: fixed(['string', 'any'], (_call, name, value) => name === typeName(value)),
  typeIsLike: fixed(['string', 'any'], (_call, name, value) => {
    return name === typeName(value) || `*${name}` === typeName(value);
  }),
  typeOf: fixed(['any'], (_call, value) => typeName(value)),
  unset: fixed(['dict', 'string'], (_call, dict, key) => {
    dict.delete(key);
    return dict;
  }),
  // Sorted by key; Go's order is random.
  values: fixed(['dict'], ({ spend }, dict) =>
    sortedKeys(dict, spend).map((key) => dict.get(key) ?? null),
  ),
};

function makeDict(spend: Spend, parts: readonly Value[]): Dict {
  const dict: Dict = new Map();
  for (let index = 0; index < parts.length; index += 2)
    dict.set(
      toText(parts[index] ?? null, spend),
      index + 1 < parts.length ? (parts[index + 1] ?? null) : '',
    );
  return dict;
}

/** Returns the value below keys, or the default, which is the last argument but one. */
function dig(parts: readonly Value[]): Value {
  const otherwise = parts.at(-2) ?? null;
  let value: Value = parts.at(-1) ?? null;
  for (const key of parts.slice(0, -2)) {
    if (typeof key !== 'string' || !isDict(value))
      throw new CallError('dig needs keys, a default and a map of maps');
    if (!value.has(key)) return otherwise;
    value = value.get(key) ?? null;
  }
  return value;
}

function mergeInto(spend: Spend, into: Dict, from: Dict, overwrites: boolean, depth: number): void {
  if (depth > MAX_DEPTH) throw new CallError('merge: maps are nested too deeply');
  for (const [key, value] of [...from]) {
    spend(1);
    const own = into.get(key) ?? null;
    if (isDict(own) && isDict(value)) mergeInto(spend, own, value, overwrites, depth + 1);
    else if (overwrites ? isTrue(value) || !into.has(key) : !isTrue(own)) into.set(key, value);
  }
}

function copy(spend: Spend, value: Value, depth: number): Value {
  spend(1);
  if (depth > MAX_DEPTH) throw new CallError('deepCopy: a value is nested too deeply');
  if (isList(value)) return value.map((part) => copy(spend, part, depth + 1));
  if (!isDict(value)) return value;
  return new Map([...value].map(([key, part]) => [key, copy(spend, part, depth + 1)]));
}

function kindOf(value: Value): string {
  if (value === null) return 'invalid';
  if (isList(value)) return 'slice';
  if (isDict(value)) return 'map';
  return value instanceof Struct ? 'struct' : typeName(value);
}
