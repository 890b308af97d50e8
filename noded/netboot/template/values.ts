/**
 * Go's values as JavaScript's: int is bigint, float64 is number, slices are arrays and maps are
 * Maps, so that no name that a template says can reach what JavaScript's objects inherit. Text is
 * of characters, and counted in bytes as Go does; a cut within a character leaves U+FFFD.
 */
export type Value = null | boolean | bigint | number | string | List | Dict | Struct;
export type List = readonly Value[];
export type Dict = Map<string, Value>;

/** Makes the map that JSON and YAML show of a struct. @param spend takes steps by its size */
export type AsDict = (spend: (steps: number) => void) => Dict;

/** A thing with named members, as `.Machine`: fields have a value, methods are called. */
export class Struct {
  readonly typeName: string;
  readonly members: ReadonlyMap<string, Value | GoFunction>;
  /** Null for a struct that has no JSON. */
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

/** What a function may use of the rendering that calls it. */
export interface Call {
  /** @throws CallError when all work that a rendering may do is done */
  readonly spend: (steps: number) => void;
  /** The text of another template. */
  readonly renderTemplate: (name: string, dot: Value) => string;
  /** The text of a template that is itself a value. */
  readonly renderText: (name: string, text: string, dot: Value) => string;
}

export class GoFunction {
  readonly fixed: readonly ArgumentType[];
  /** The type of those after the fixed ones, or null when there are none. */
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

/** A function of a fixed number of arguments. */
export function fixed<const Types extends readonly ArgumentType[]>(
  types: Types,
  run: (call: Call, ...args: Arguments<Types>) => Value,
): GoFunction {
  // The evaluator has compared number and types with those stated here.
  return new GoFunction(types, null, (call, args) =>
    run(call, ...(args as unknown as Arguments<Types>)),
  );
}

/** A function that takes any number of arguments of one type after the fixed ones. */
export function variadic<const Types extends readonly ArgumentType[], Rest extends ArgumentType>(
  types: Types,
  rest: Rest,
  run: (call: Call, fixed: Arguments<Types>, rest: readonly ArgumentTypes[Rest][]) => Value,
): GoFunction {
  return new GoFunction(types, rest, (call, args) =>
    run(
      call,
      // As above.
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

/** As Go's %T and its errors name it. */
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

/** By code points, which is how Go's strings compare. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  // Code units have another order only where there are surrogates.
  if (!SURROGATE.test(left) && !SURROGATE.test(right)) return left < right ? -1 : 1;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** By code points. @param spend takes steps by the lengths that comparisons go over */
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

/** Bytes of a text, as Go slices it. */
export function sliceBytes(text: string, start: number, end: number): string {
  return Buffer.from(text).subarray(start, end).toString();
}

/** JSON as templates see it: each number is a float64, as in Go. */
export function fromJson(value: unknown): Value {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return value;
  if (Array.isArray(value)) return value.map(fromJson);
  return new Map(Object.entries(value).map(([key, part]) => [key, fromJson(part)]));
}
