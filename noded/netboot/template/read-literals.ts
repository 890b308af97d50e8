import type { NumberLiteral } from './nodes.ts';

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
]);

/**
 * Returns the text of a Go string or character literal, or null for an invalid literal. Invalid
 * UTF-8 becomes U+FFFD.
 */
export function unquote(literal: string): string | null {
  const quote = literal.charAt(0);
  const body = literal.slice(1, -1);
  if (quote === '`') return body.replaceAll('\r', '');
  const bytes: Buffer[] = [];
  for (const [part] of body.matchAll(/\\(?:[xuU0-7][0-9a-fA-F]*|[^])|[^\\]+/g)) {
    if (!part.startsWith('\\')) {
      bytes.push(Buffer.from(part));
      continue;
    }
    const escaped = unescape(part, quote);
    if (escaped === null) return null;
    bytes.push(escaped);
  }
  return Buffer.concat(bytes).toString();
}

function unescape(part: string, quote: string): Buffer | null {
  const kind = part.charAt(1);
  const digits = { x: 2, u: 4, U: 8 }[kind];
  if (digits !== undefined) {
    const hex = part.slice(2, 2 + digits);
    if (hex.length < digits) return null;
    const code = Number.parseInt(hex, 16);
    const rest = Buffer.from(part.slice(2 + digits));
    if (kind === 'x') return Buffer.concat([Buffer.of(code), rest]);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return null;
    return Buffer.concat([Buffer.from(String.fromCodePoint(code)), rest]);
  }
  if (/[0-7]/.test(kind)) {
    const octal = /^[0-7]{3}/.exec(part.slice(1))?.[0];
    const code = Number.parseInt(octal ?? '400', 8);
    return octal === undefined || code > 255
      ? null
      : Buffer.concat([Buffer.of(code), Buffer.from(part.slice(4))]);
  }
  const plain = kind === quote ? quote : ESCAPES.get(kind);
  return plain === undefined ? null : Buffer.from(plain);
}

/** Reads a character literal as the number of its code point. */
export function readCharacter(literal: string): NumberLiteral | null {
  const byte = /^'\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{2}))'$/.exec(literal);
  const text = byte ? null : unquote(literal);
  const [first, ...others] = text ?? '';
  const code = byte
    ? Number.parseInt(byte[1] ?? byte[2] ?? '', byte[1] === undefined ? 8 : 16)
    : first?.codePointAt(0);
  if (code === undefined || others.length > 0) return null;
  return { kind: 'number', value: BigInt(code), asInt: BigInt(code), asFloat: code };
}

const MAX_INT = (1n << 63n) - 1n;
const WHOLE = /^[+-]?(?:0x_?[0-9a-f]|0o_?[0-7]|0b_?[01]|\d)(?:_?[0-9a-f])*$/i;
const WHOLE_DIGITS = /^[+-]?(?:0x[0-9a-f]+|0o[0-7]+|0b[01]+|0[0-7]*|[1-9][0-9]*)$/i;
const MAX_NUMBER_LENGTH = 400;

/** Reads a Go number; null for an invalid number or a number that fits no type. */
export function readNumber(text: string): NumberLiteral | null {
  if (text.length > MAX_NUMBER_LENGTH) return null;
  if (WHOLE.test(text) && WHOLE_DIGITS.test(text.replaceAll('_', ''))) {
    const int = readInt(text);
    return int === null || int > MAX_INT || int < -MAX_INT - 1n
      ? null
      : { kind: 'number', value: int, asInt: int, asFloat: Number(int) };
  }
  if (!/[.eEpP]/.test(text)) return null;
  const float = readFloat(text);
  if (float === null) return null;
  const isWhole = Number.isInteger(float) && Math.abs(float) < 2 ** 63;
  return { kind: 'number', value: float, asInt: isWhole ? BigInt(float) : null, asFloat: float };
}

function readInt(text: string): bigint | null {
  const [, sign = '', digits = ''] = /^([+-]?)(.*)$/.exec(text.replaceAll('_', '')) ?? [];
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits.toLowerCase();
  const magnitude = BigInt(octal);
  return sign === '-' ? -magnitude : magnitude;
}

function readFloat(text: string): number | null {
  const decimal = readDecimal(text);
  if (decimal !== null) return Number.isFinite(decimal) ? decimal : null;
  const hex = /^([+-]?)0x([0-9a-f.]*)p([+-]?\d{1,5})$/i.exec(text);
  const [, sign = '', digits = '', exponent = ''] = hex ?? [];
  const [whole = '', fraction = '', ...more] = digits.split('.');
  if (!hex || more.length > 0 || whole + fraction === '') return null;
  const mantissa = Number(BigInt(`0x${whole}${fraction}`));
  const float = mantissa * 2 ** (Number(exponent) - 4 * fraction.length);
  return Number.isFinite(float) ? (sign === '-' ? -float : float) : null;
}

/** Reads a decimal number as Go does, possibly infinite; null for an invalid one. */
export function readDecimal(text: string): number | null {
  const isNumber =
    text.length < MAX_NUMBER_LENGTH &&
    /^[+-]?[\d.]+(?:e[+-]?\d+)?$/i.test(text) &&
    /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e|$)/i.test(text);
  return isNumber ? Number(text) : null;
}
