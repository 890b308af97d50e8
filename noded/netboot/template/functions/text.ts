import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { formatEach, formatPlain, MAX_TEXT_LENGTH } from '../format-each.ts';
import { quoteGo } from '../quote.ts';
import { CallError } from '../template-error.ts';
import { byteLength, fixed, sliceBytes, variadic, type GoFunction, type Value } from '../values.ts';
import { toText, toTexts } from './convert.ts';
import { abbreviate, abbreviateBoth, camelCase, swapCase, titleCase, wrapText } from './words.ts';
import { wordsOf } from './words.ts';

const bytes = (text: string): Buffer => Buffer.from(text);
const ofText = (change: (text: string) => Value): GoFunction =>
  fixed(['string'], ({ spend }, text) => {
    spend(text.length >> 4);
    return change(text);
  });
const ofCharacters = (change: (text: string) => Value): GoFunction =>
  fixed(['string'], ({ spend }, text) => {
    spend(text.length >> 1);
    return change(text);
  });
const ofTexts = (change: (by: string, text: string) => Value): GoFunction =>
  fixed(['string', 'string'], ({ spend }, by, text) => {
    spend(text.length >> 4);
    return change(by, text);
  });

/** sprig's functions of text, their arguments in sprig's order. */
export const textFunctions: Readonly<Record<string, GoFunction>> = {
  abbrev: fixed(['int', 'string'], (_call, width, text) => abbreviate(Number(width), text)),
  abbrevboth: fixed(['int', 'int', 'string'], (_call, left, right, text) =>
    abbreviateBoth(Number(left), Number(right), text),
  ),
  atoi: ofText((text) => (/^[+-]?\d{1,18}$/.test(text) ? BigInt(text.replace(/^\+/, '')) : 0n)),
  b32dec: ofCharacters(decodeBase32),
  b32enc: fixed(['string'], ({ spend }, text) => {
    spend(text.length * 2);
    return encodeBase32(text);
  }),
  b64dec: ofText(decodeBase64),
  b64enc: ofText((text) => bytes(text).toString('base64')),
  base: ofText((path) => (path === '' ? '.' : posix.basename(path) || '/')),
  camelcase: ofCharacters(camelCase),
  cat: variadic([], 'any', ({ spend }, _fixed, values) => {
    const known = values.filter((value) => value !== null);
    return known.map((value) => formatEach(value, spend, formatPlain)).join(' ');
  }),
  clean: ofText(cleanPath),
  contains: ofTexts((part, text) => text.includes(part)),
  dir: ofText((path) => cleanPath(path.slice(0, path.lastIndexOf('/') + 1))),
  ext: ofText((path) => /\.[^./]*$/.exec(path)?.[0] ?? ''),
  fail: ofText((text) => {
    throw new CallError(`fail: ${JSON.stringify(text)}`);
  }),
  hasPrefix: ofTexts((part, text) => text.startsWith(part)),
  hasSuffix: ofTexts((part, text) => text.endsWith(part)),
  indent: fixed(['int', 'string'], ({ spend }, width, text) => indent(spend, width, text)),
  initials: ofCharacters((text) =>
    wordsOf(text)
      .map((word) => [...word][0] ?? '')
      .join(''),
  ),
  isAbs: ofText((path) => path.startsWith('/')),
  join: fixed(['string', 'any'], ({ spend }, separator, values) => {
    const texts = toTexts(values, spend);
    spend(texts.length * (1 + (separator.length >> 5)));
    const length = texts.reduce((sum, text) => sum + separator.length + text.length, 0);
    if (length > MAX_TEXT_LENGTH + separator.length)
      throw new CallError('the result of join is too long');
    return texts.join(separator);
  }),
  kebabcase: ofCharacters((text) => snakeCase(text, '-')),
  lower: ofText((text) => text.toLowerCase()),
  nindent: fixed(['int', 'string'], ({ spend }, width, text) => `\n${indent(spend, width, text)}`),
  nospace: ofText((text) => text.replace(/\p{White_Space}/gu, '')),
  plural: fixed(['string', 'string', 'int'], (_call, one, many, count) =>
    count === 1n ? one : many,
  ),
  quote: variadic([], 'any', ({ spend }, _fixed, values) =>
    values
      .filter((value) => value !== null)
      .map((value) => {
        const text = toText(value, spend);
        spend(text.length >> 2);
        return quoteGo(text);
      })
      .join(' '),
  ),
  repeat: fixed(['int', 'string'], ({ spend }, count, text) => {
    if (count < 0n) throw new CallError('repeat: the count is below zero');
    if (count * BigInt(text.length) > MAX_TEXT_LENGTH)
      throw new CallError('the result of repeat is too long');
    if (text === '') return '';
    spend((Number(count) * text.length) >> 8);
    return text.repeat(Number(count));
  }),
  replace: fixed(['string', 'string', 'string'], ({ spend }, from, to, text) => {
    const count = from === '' ? [...text].length + 1 : text.split(from).length - 1;
    if (count * to.length > MAX_TEXT_LENGTH)
      throw new CallError('the result of replace is too long');
    spend((text.length + count * to.length) >> 5);
    return from === ''
      ? [to, ...[...text].flatMap((each) => [each, to])].join('')
      : text.split(from).join(to);
  }),
  sha1sum: ofText((text) => createHash('sha1').update(text).digest('hex')),
  sha256sum: ofText((text) => createHash('sha256').update(text).digest('hex')),
  adler32sum: ofText((text) => String(adler32(bytes(text)))),
  snakecase: ofCharacters((text) => snakeCase(text, '_')),
  split: fixed(['string', 'string'], ({ spend }, separator, text) => {
    spend(text.length >> 4);
    return numbered(splitText(separator, text, -1), spend);
  }),
  splitList: ofTexts((separator, text) => splitText(separator, text, -1)),
  splitn: fixed(['string', 'int', 'string'], ({ spend }, separator, count, text) =>
    numbered(splitText(separator, text, Number(count)), spend),
  ),
  squote: variadic([], 'any', ({ spend }, _fixed, values) =>
    values
      .filter((value) => value !== null)
      .map((value) => `'${toText(value, spend)}'`)
      .join(' '),
  ),
  substr: fixed(['int', 'int', 'string'], (_call, start, end, text) =>
    substring(Number(start), Number(end), text),
  ),
  swapcase: ofCharacters(swapCase),
  title: ofCharacters(titleCase),
  toString: fixed(['any'], ({ spend }, value) => toText(value, spend)),
  toStrings: fixed(['any'], ({ spend }, value) => toTexts(value, spend)),
  trim: ofText((text) => text.replace(/^\p{White_Space}+/u, '').trimEnd()),
  trimAll: ofTexts(trimAll),
  trimPrefix: ofTexts((part, text) => (text.startsWith(part) ? text.slice(part.length) : text)),
  trimSuffix: ofTexts((part, text) =>
    part !== '' && text.endsWith(part) ? text.slice(0, -part.length) : text,
  ),
  trimall: ofTexts(trimAll),
  trunc: fixed(['int', 'string'], (_call, length, text) => truncate(Number(length), text)),
  untitle: ofCharacters((text) =>
    text.replace(/(^|\p{White_Space})(\p{L})/gu, (each) => each.toLowerCase()),
  ),
  upper: ofText((text) => text.toUpperCase()),
  wrap: fixed(['int', 'string'], ({ spend }, width, text) => {
    spend(text.length);
    return wrapText(text, Number(width), '\n', false);
  }),
  wrapWith: fixed(['int', 'string', 'string'], ({ spend }, width, newLine, text) => {
    spend(text.length * (1 + (newLine.length >> 5)));
    if (text.length * newLine.length > MAX_TEXT_LENGTH)
      throw new CallError('the result of wrapWith is too long');
    return wrapText(text, Number(width), newLine || '\n', true);
  }),
};

function indent(spend: (steps: number) => void, width: bigint, text: string): string {
  const lines = text.split('\n');
  if (width < 0n) throw new CallError('indent: the width is below zero');
  if (width * BigInt(lines.length) > MAX_TEXT_LENGTH)
    throw new CallError('the result of indent is too long');
  spend((text.length + Number(width) * lines.length) >> 5);
  const pad = ' '.repeat(Number(width));
  return lines.map((line) => pad + line).join('\n');
}

/** Implements strings.Split and SplitN: an empty separator splits into characters. */
function splitText(separator: string, text: string, count: number): readonly string[] {
  if (count === 0) return [];
  const parts = separator === '' ? [...text] : text.split(separator);
  if (count < 0 || parts.length <= count) return parts;
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)];
}

function numbered(parts: readonly string[], spend: (steps: number) => void): Map<string, Value> {
  spend(parts.length);
  return new Map(parts.map((part, index) => [`_${index}`, part]));
}

function substring(start: number, end: number, text: string): string {
  const length = byteLength(text);
  const last = end < 0 || end > length ? length : end;
  const from = start < 0 ? 0 : start;
  if ((start < 0 && (end < 0 || end > length)) || from > last)
    throw new CallError('substr: bounds out of range');
  return sliceBytes(text, from, last);
}

function truncate(length: number, text: string): string {
  const size = byteLength(text);
  if (length < 0) return size + length > 0 ? sliceBytes(text, size + length, size) : text;
  return size > length ? sliceBytes(text, 0, length) : text;
}

function trimAll(characters: string, text: string): string {
  const cut = new Set(characters);
  const parts = [...text];
  let [start, end] = [0, parts.length];
  while (start < end && cut.has(parts[start] ?? '')) start += 1;
  while (end > start && cut.has(parts[end - 1] ?? '')) end -= 1;
  return parts.slice(start, end).join('');
}

/** In characters; PATH_MAX of Linux. */
const MAX_PATH_LENGTH = 4096;

/** Implements Go's path.Clean. */
function cleanPath(path: string): string {
  if (path === '') return '.';
  // Node's normalize takes quadratic time for a path of many dots.
  if (path.length > MAX_PATH_LENGTH) throw new CallError('a path is too long');
  const clean = posix.normalize(path);
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean;
}

/**
 * Runs of one kind: lower-case letters with a capital before them, capitals, digits, and others.
 */
const RUNS =
  /\p{Lu}?\p{Ll}+|\p{Lu}(?:(?!\p{Lu}\p{Ll})\p{Lu})*|\d+|[\s_-]|(?:(?![_-])\p{P})+|[^\p{L}\d\s\p{P}]+|[^]/gu;
const kindOfRun = (run: string | undefined): 'none' | 'small' | 'number' | 'word' => {
  if (run === undefined || /^[\s\p{P}]/u.test(run)) return 'none';
  if (/^\d/.test(run)) return 'number';
  return /^\p{Ll}/u.test(run) ? 'small' : 'word';
};

/**
 * A number belongs to the word before it, unless lower-case letters follow: bld4_floor_3rd,
 * http_2xx.
 */
function snakeCase(text: string, separator: string): string {
  const runs = text.match(RUNS) ?? [];
  let isWithinNumber = false;
  return runs
    .map((run, index) => {
      if (/^[\s_-]/.test(run)) return separator;
      const [before, kind, after] = [index - 1, index, index + 1].map((at) => kindOfRun(runs[at]));
      const follows = before !== 'none';
      const stays = follows && isWithinNumber && (kind === 'small' || kind === 'number');
      const isOfWord = kind === 'number' && follows && before !== 'number' && after !== 'small';
      isWithinNumber = stays || (kind === 'number' && !isOfWord);
      const isApart = kind !== 'none' && follows && !stays && !isOfWord;
      return (isApart ? separator : '') + run.toLowerCase();
    })
    .join('');
}

function decodeBase64(text: string): string {
  const isWhole = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(
    text.replace(/[\r\n]/g, ''),
  );
  if (!isWhole) throw new CallError('b64dec: not base64');
  return Buffer.from(text, 'base64').toString();
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function encodeBase32(text: string): string {
  const bits = [...bytes(text)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const digits = (bits.match(/.{1,5}/g) ?? []).map((five) => {
    return BASE32.charAt(Number.parseInt(five.padEnd(5, '0'), 2));
  });
  return digits.join('').padEnd(Math.ceil(digits.length / 8) * 8, '=');
}

function decodeBase32(text: string): string {
  if (text.length % 8 !== 0 || !/^[A-Z2-7]*={0,6}$/.test(text))
    throw new CallError('b32dec: not base32');
  const bits = [...text.replaceAll('=', '')]
    .map((digit) => BASE32.indexOf(digit).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from(
    (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)),
  ).toString();
}

function adler32(data: Buffer): number {
  let [a, b] = [1, 0];
  for (const byte of data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b * 65536 + a;
}
