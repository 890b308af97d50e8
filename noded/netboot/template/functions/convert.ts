import { formatEach, formatPlain, type Spend } from '../format-each.ts';
import { readDecimal } from '../read-literals.ts';
import { CallError } from '../template-error.ts';
import { isList, typeName, type List, type Value } from '../values.ts';

/** Conversions of sprig's functions for values of other types. */

export function toText(value: Value, spend: Spend): string {
  if (typeof value !== 'string') return formatEach(value, spend, formatPlain);
  spend(value.length >> 8);
  return value;
}

/** Implements sprig's strslice: nil is left out, and any other value becomes a list of one. */
export function toTexts(value: Value, spend: Spend): readonly string[] {
  if (value === null) return [];
  const parts = isList(value) ? value : [value];
  return parts.filter((part) => part !== null).map((part) => toText(part, spend));
}

export function listOf(value: Value, name: string): List {
  if (isList(value)) return value;
  throw new CallError(`${name} needs a list, not a ${typeName(value)}`);
}

const INT = /^[+-]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9]\d*)$/;
const MAX_NUMBER_LENGTH = 400;
const ZERO_DECIMAL = /\.0*$/;
export const wrapInt = (value: bigint): bigint => BigInt.asIntN(64, value);

/** Converts a value; other values than numbers become zero, as in sprig. */
export function toInt(value: Value): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number')
    return Number.isFinite(value) ? wrapInt(BigInt(Math.trunc(value))) : 0n;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  return typeof value === 'string' && value.length < MAX_NUMBER_LENGTH
    ? intOfText(value.replace(ZERO_DECIMAL, ''))
    : 0n;
}

function intOfText(text: string): bigint {
  if (!INT.test(text) || text.length > 66) return 0n;
  const digits = text.replace(/^[+-]/, '');
  const magnitude = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase());
  const value = text.startsWith('-') ? -magnitude : magnitude;
  return value === wrapInt(value) ? value : 0n;
}

export function toFloat(value: Value): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'string' ? (readDecimal(value) ?? 0) : 0;
}
