/**
 * Go's values in JavaScript: int is bigint, float64 is number, slices are arrays and maps are Maps,
 * so that no name in a template reaches inherited members of objects. Text is in characters, with
 * lengths in bytes as in Go; a cut within a character leaves U+FFFD.
 */
export type Value = null | boolean | bigint | number | string | List | Dict | Struct;
export type List = readonly Value[];
export type Dict = Map<string, Value>;

/** Makes the JSON and YAML map of a struct. @param spend takes steps by its size */
export type AsDict = (spend: (steps: number) => void) => Dict;

/** A value with named members, such as `.Machine`: fields have a value, methods are called. */
export class Struct {
  readonly typeName: string;
  readonly members: ReadonlyMap<string, Value | GoFunction>;
  /** Null for a struct without JSON. */
  readonly asDict: AsDict | null;

  constructor(
    typeName: string,
    members: Readonly<Record<string, Value | GoFunction>>,
    asDict: AsDict | null = null,
  ) {
    this.typeName = typeName;
    this.members = new Map(Object.entries(members));
    this.asDict = asDict;
  }
}

export interface ArgumentTypes {
  readonly any: Value;
  readonly string: string;
  readonly int: bigint;
  readonly float: number;
  readonly bool: boolean;
  readonly dict: Dict;
}
export type ArgumentType = keyof ArgumentTypes;

export interface Call {
  /** @throws CallError when no steps are left */
  readonly spend: (steps: number) => void;
  readonly renderTemplate: (name: string, dot: Value) => string;
  /** Renders a value as a template. */
  readonly renderText: (name: string, text: string, dot: Value) => string;
}

export class GoFunction {
  readonly fixed: readonly ArgumentType[];
  readonly rest: ArgumentType | null;
  readonly run: (call: Call, args: readonly Value[]) => Value;

  constructor(
    fixed: readonly ArgumentType[],
    rest: ArgumentType | null,
    run: (call: Call, args: readonly Value[]) => Value,
  ) {
    this.fixed = fixed;
    this.rest = rest;
    this.run = run;
  }
}

type Arguments<Types extends readonly ArgumentType[]> = {
  [Index in keyof Types]: ArgumentTypes[Types[Index]];
};

export function fixed<const Types extends readonly ArgumentType[]>(
  types: Types,
  run: (call: Call, ...args: Arguments<Types>) => Value,
): GoFunction {
  // The evaluator has checked number and types of the arguments.
  return new GoFunction(types, null, (call, args) =>
    run(call, ...(args as unknown as Arguments<Types>)),
  );
}

export function variadic<const Types extends readonly ArgumentType[], Rest extends ArgumentType>(
  types: Types,
  rest: Rest,
  run: (call: Call, fixed: Arguments<Types>, rest: readonly ArgumentTypes[Rest][]) => Value,
): GoFunction {
  return new GoFunction(types, rest, (call, args) =>
    run(
      call,
      args.slice(0, types.length) as unknown as Arguments<Types>,
      args.slice(types.length) as ArgumentTypes[Rest][],
    ),
  );
}

export function isList(value: Value): value is List {
  return Array.isArray(value);
}

export function isDict(value: Value): value is Dict {
  return value instanceof Map;
}

/** Names a type as Go's %T and its errors do. */
export function typeName(value: Value): string {
  if (value === null) return '<nil>';
  if (isList(value)) return '[]interface {}';
  if (isDict(value)) return 'map[string]interface {}';
  if (value instanceof Struct) return value.typeName;
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  return typeof value === 'number' ? 'float64' : 'string';
}

/** Whether a value is not the zero of its type. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isDict(value)) return value.size > 0;
  return Boolean(value);
}

const SURROGATE = /[\ud800-\udfff]/;

/** Compares by code points, as Go's strings do. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  // The order of code units differs only for surrogates.
  if (!SURROGATE.test(left) && !SURROGATE.test(right)) return left < right ? -1 : 1;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** Sorts by code points. @param spend takes steps by the length of the comparisons */
export function sortTexts(
  texts: readonly string[],
  spend: (steps: number) => void,
): readonly string[] {
  const rounds = Math.ceil(Math.log2(texts.length + 1));
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  spend(rounds * (texts.length + Math.floor(length / 64)));
  return texts.toSorted(compareText);
}

export function sortedKeys(
  dict: ReadonlyMap<string, Value>,
  spend: (steps: number) => void,
): readonly string[] {
  return sortTexts([...dict.keys()], spend);
}

export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** Slices a text by bytes, as Go does. */
export function sliceBytes(text: string, start: number, end: number): string {
  return Buffer.from(text).subarray(start, end).toString();
}

/** Converts JSON to template values: each number is a float64, as in Go. */
export function fromJson(value: unknown): Value {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return value;
  if (Array.isArray(value)) return value.map(fromJson);
  return new Map(Object.entries(value).map(([key, part]) => [key, fromJson(part)]));
}
