import { z } from 'zod';
import {
  type ParameterType,
  type PlainKey,
  plainKeysOf,
  type PlainPlace,
  plainSettings,
  type ValueType,
} from './parameter-keys.ts';

type Rows = typeof plainSettings;

export type SchemaOf<Type> = Type extends { readonly isSwitch: true }
  ? z.ZodBoolean
  : Type extends { readonly words: readonly (infer Word extends string)[] }
    ? z.ZodEnum<{ [Each in Word]: Each }>
    : Type extends { readonly list: readonly (infer Word extends string)[] }
      ? z.ZodArray<z.ZodEnum<{ [Each in Word]: Each }>>
      : Type extends { readonly least: number }
        ? z.ZodNumber
        : z.ZodString;

type Shape<Place extends PlainPlace> = {
  -readonly [Key in PlainKey<Place>]: SchemaOf<Rows[Key]['type']>;
};
type OptionalShape<Place extends PlainPlace> = {
  [Key in keyof Shape<Place>]: z.ZodOptional<Shape<Place>[Key]>;
};
type RecordShape<Place extends PlainPlace> = {
  [Key in keyof Shape<Place>]: Rows[Key] extends { readonly isInAllRecords: true }
    ? Shape<Place>[Key]
    : z.ZodDefault<Shape<Place>[Key]>;
};
type Values<Place extends PlainPlace> = {
  [Key in keyof Shape<Place>]: z.infer<Shape<Place>[Key]>;
};

/** A path or a URL. */
export const MAX_SOURCE_LENGTH = 4096;
export const source = z.string().min(1).max(MAX_SOURCE_LENGTH);

export function schemaOf(type: ParameterType | ValueType): z.ZodType {
  if ('isSwitch' in type) return z.boolean();
  if ('words' in type) return z.enum(type.words);
  if ('list' in type) return z.array(z.enum(type.list)).min(1);
  if ('least' in type) return z.number().int().min(type.least).max(type.most);
  return 'isFile' in type ? source : z.string().max(type.maxLength);
}

/** Returns the schemas of a place's settings for an opcode. */
export function optionalSettings<Place extends PlainPlace>(place: Place): OptionalShape<Place> {
  return byKey(place, (key) => schemaOf(plainSettings[key].type).optional());
}

/** Returns the schemas of a place's settings for a record. */
export function storedSettings<Place extends PlainPlace>(place: Place): RecordShape<Place> {
  return byKey(place, (key) => {
    const row = plainSettings[key];
    const schema = schemaOf(row.type);
    return 'isInAllRecords' in row ? schema : schema.default(row.default);
  });
}

/** Returns given settings of a place over stored ones, or over the defaults of a new instance. */
export function mergePlainSettings<Place extends PlainPlace>(
  place: Place,
  given: { readonly [Key in PlainKey<Place>]?: Values<Place>[Key] | undefined },
  stored?: { readonly [Key in PlainKey<Place>]: Values<Place>[Key] },
): Values<Place> {
  return byKey(place, (key) => given[key] ?? stored?.[key] ?? plainSettings[key].default);
}

/** Returns an object with a value for each key of a place. */
export function byKey<Place extends PlainPlace, Result extends Record<PlainKey<Place>, unknown>>(
  place: Place,
  make: (key: PlainKey<Place>) => unknown,
): Result {
  // fromEntries returns any. The caller's type describes the values.
  return Object.fromEntries(plainKeysOf(place).map((key) => [key, make(key)])) as Result;
}
