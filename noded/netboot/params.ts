import { isDeepStrictEqual } from 'node:util';
import type { BootParam } from '#shared/contract/boot-env.ts';
import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { BootParameter, BootPlanInput } from './boot-plan.ts';
import { CallError } from './template/template-error.ts';
import { fromJson, type Dict } from './template/values.ts';

export type ParamValue =
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'known';
      readonly value: unknown;
      /** Whether files that contain it are treated as secret. */
      readonly isHidden: boolean;
      /** Whether it is forgotten when its job ends. */
      readonly isSecret: boolean;
    };

type ParamSources = Pick<BootPlanInput, 'parameters' | 'schemas' | 'layers'>;

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;
type SchemaType = (typeof TYPES)[number];

interface ParamSchema {
  /** Empty for an absent or unknown type. */
  readonly types: readonly SchemaType[];
  readonly values: readonly unknown[] | undefined;
  readonly byDefault: unknown;
}

function readSchema(param: BootParam | undefined): ParamSchema {
  const schema: unknown = param?.Schema;
  if (!isMap(schema)) return { types: [], values: undefined, byDefault: undefined };
  const { type, enum: values, default: byDefault } = schema;
  const named: readonly unknown[] = Array.isArray(type) ? type : [type];
  return {
    types: TYPES.filter((each) => named.includes(each)),
    values: Array.isArray(values) ? values : undefined,
    byDefault,
  };
}

/**
 * Returns the reason why the default of a param does not fit its schema; null when it fits. Pure.
 */
export function whyBadDefault(param: BootParam): string | null {
  const { types, values, byDefault } = readSchema(param);
  if (byDefault === undefined) return null;
  if (types.length > 0 && !types.some((type) => isOfType(byDefault, type)))
    return `its default is not of the type ${types.join(' or ')}`;
  const isListed = (each: unknown): boolean => isDeepStrictEqual(each, byDefault);
  return values && !values.some(isListed) ? 'its default is not a value of its enum' : null;
}

/** Counts steps by the length of the input. @throws CallError when none are left */
type Spend = (steps: number) => void;

/** The params of one plan. Each is parsed once. */
export interface ParamReader {
  /** @throws CallError */
  readonly read: (name: string, spend: Spend) => ParamValue | undefined;
  /** Joins the values of all layers. @throws CallError */
  readonly compose: (name: string, spend: Spend) => ParamValue | undefined;
  readonly has: (name: string) => boolean;
  /**
   * Lists the params of the instance itself, without private, secret and Secure ones.
   * @throws CallError
   */
  readonly listPublic: (spend: Spend) => Dict;
}

export function createParamReader(sources: ParamSources): ParamReader {
  const once = (make: typeof readParam): ParamReader['read'] => {
    const known = new Map<string, ParamValue | undefined>();
    return (name, spend) => {
      if (!known.has(name)) known.set(name, make(name, sources, spend));
      return known.get(name);
    };
  };
  return {
    read: once(readParam),
    compose: once(composeParam),
    has: (name) => hasParam(name, sources),
    listPublic: (spend) => listPublic(sources, spend),
  };
}

function listPublic({ layers, schemas }: ParamSources, spend: Spend): Dict {
  const params: Dict = new Map();
  for (const [name, parameter] of layers.at(-1)?.values ?? []) {
    const param = readParameter(name, parameter, schemas.get(name), spend);
    if (param.kind === 'known' && !param.isHidden) params.set(name, fromJson(param.value));
  }
  return params;
}

export function hasParam(name: string, { schemas, parameters }: ParamSources): boolean {
  return parameters.has(name) || readSchema(schemas.get(name)).byDefault !== undefined;
}

/**
 * Returns a param: the OS parameter in force, else its schema's default, else undefined.
 * @throws CallError when the parameter is not of its schema's type
 */
export function readParam(
  name: string,
  sources: ParamSources,
  spend: Spend = () => undefined,
): ParamValue | undefined {
  const schema = sources.schemas.get(name);
  const parameter = sources.parameters.get(name);
  if (parameter) return readParameter(name, parameter, schema, spend);
  const { byDefault } = readSchema(schema);
  if (byDefault === undefined) return undefined;
  return { kind: 'known', value: byDefault, isHidden: schema?.Secure === true, isSecret: false };
}

/**
 * Joins a param's values of all layers. Maps are merged, and higher layers win. Lists are
 * concatenated, the higher first. Other types take the value in force.
 */
function composeParam(
  name: string,
  sources: ParamSources,
  spend: Spend = () => undefined,
): ParamValue | undefined {
  const schema = sources.schemas.get(name);
  const parts = sources.layers.flatMap(({ values }) => {
    const parameter = values.get(name);
    return parameter ? [readParameter(name, parameter, schema, spend)] : [];
  });
  if (parts.length === 0) return readParam(name, sources, spend);
  const known = parts.filter((part) => part.kind === 'known');
  if (known.length < parts.length) return { kind: 'lost' };
  return {
    kind: 'known',
    value: known.map(({ value }) => value).reduce((low, high) => compose(low, high, 0)),
    isHidden: known.some(({ isHidden }) => isHidden),
    isSecret: known.some(({ isSecret }) => isSecret),
  };
}

/** Depth limit of merging maps. Below it the higher layer's value is taken whole. */
const MAX_COMPOSE_DEPTH = 32;

function compose(low: unknown, high: unknown, depth: number): unknown {
  // `isArray` narrows unknown to any[].
  if (Array.isArray(low) && Array.isArray(high))
    return [...(high as unknown[]), ...(low as unknown[])];
  if (!isMap(low) || !isMap(high) || depth >= MAX_COMPOSE_DEPTH) return high;
  const joined = Object.entries(high).map(([key, value]) => [
    key,
    Object.hasOwn(low, key) ? compose(ownValue(low, key), value, depth + 1) : value,
  ]);
  return { ...low, ...Object.fromEntries(joined) };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readParameter(
  name: string,
  { visibility, value }: BootParameter,
  schema: BootParam | undefined,
  spend: Spend,
): ParamValue {
  if (value === null) return { kind: 'lost' };
  const text = typeof value === 'string' ? value : reveal(value);
  return {
    kind: 'known',
    value: readTyped(name, text, schema, spend),
    isHidden: isHiddenFromLogs(visibility) || schema?.Secure === true,
    isSecret: visibility === 'secret',
  };
}

const STAND_INS = {
  array: '[]',
  boolean: 'false',
  integer: '0',
  null: 'null',
  number: '0',
  object: '{}',
  string: '<secret>',
} as const satisfies Record<SchemaType, string>;

/**
 * Replaces each secret by a fixed value that does not depend on the secret or on whether it is
 * known. Pure.
 */
export function withoutSecrets({ schemas, parameters, layers }: ParamSources): ParamSources {
  const replaced = (values: ReadonlyMap<string, BootParameter>): Map<string, BootParameter> =>
    new Map(
      [...values].map(([name, parameter]) => {
        if (parameter.visibility !== 'secret') return [name, parameter];
        const { types, values: listed } = readSchema(schemas.get(name));
        const value = listed?.[0] ?? STAND_INS[isText(types) ? 'string' : (types[0] ?? 'string')];
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        return [name, { visibility: 'private', value: text }];
      }),
    );
  return {
    schemas,
    parameters: replaced(parameters),
    layers: layers.map(({ values }) => ({ values: replaced(values) })),
  };
}

/**
 * Returns a stand-in for a hidden value with its type, keys and length, so that templates take the
 * same branches. Texts become `word`, numbers 0. For an enum it is the first value. Pure.
 */
export function redactParam(text: string, param: BootParam | undefined, word: string): string {
  const { types, values } = readSchema(param);
  const [first] = values ?? [];
  if (first !== undefined) return typeof first === 'string' ? first : JSON.stringify(first);
  if (isText(types)) return word;
  try {
    return JSON.stringify(JSON.parse(text), (_key, value: unknown) => {
      if (typeof value === 'string') return word;
      if (typeof value === 'number') return 0;
      return typeof value === 'boolean' ? false : value;
    });
  } catch {
    // Reading the value fails too, and so does reading this.
    return '';
  }
}

function isText(types: readonly SchemaType[]): boolean {
  return types.length === 0 || types.includes('string');
}

/** Reads the text of an OS parameter; any type other than string is JSON. */
function readTyped(
  name: string,
  text: string,
  param: BootParam | undefined,
  spend: Spend,
): unknown {
  spend(1 + (text.length >> 5));
  const { types, values } = readSchema(param);
  const value = isText(types) ? text : readJson(name, text, types);
  const wanted = values && JSON.stringify(value);
  const isWanted = (each: unknown): boolean => {
    const listed = JSON.stringify(each);
    spend(1 + (listed.length >> 6));
    return listed === wanted;
  };
  if (values && !values.some(isWanted))
    throw new CallError(`the parameter '${name}' must be one of the values that its schema lists`);
  return value;
}

function readJson(name: string, text: string, types: readonly SchemaType[]): unknown {
  const wanted = `the parameter '${name}' must be ${types.join(' or ')}, written as JSON`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would reveal parts of the value.
    throw new CallError(wanted);
  }
  if (!types.some((type) => isOfType(value, type))) throw new CallError(wanted);
  return value;
}

function isOfType(value: unknown, type: SchemaType): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isMap(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    case 'boolean':
    case 'number':
    case 'string':
      return typeof value === type;
  }
}
