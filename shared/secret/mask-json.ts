import type { JsonValue } from '../errors/app-error.ts';

/** Returns the value with every string in it masked; keys stay as they are. */
export function maskJson(value: JsonValue, mask: (text: string) => string): JsonValue {
  if (typeof value === 'string') return mask(value);
  if (Array.isArray(value)) return value.map((each: JsonValue) => maskJson(each, mask));
  if (typeof value !== 'object' || value === null) return value;
  return maskDetails(value as { readonly [key: string]: JsonValue }, mask); // neither array nor null
}

/** Masks the details of an error like `maskJson`. */
export function maskDetails(
  details: { readonly [key: string]: JsonValue },
  mask: (text: string) => string,
): { readonly [key: string]: JsonValue } {
  return Object.fromEntries(
    Object.entries(details).map(([key, value]) => [key, maskJson(value, mask)]),
  );
}
