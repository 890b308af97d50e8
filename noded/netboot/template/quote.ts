const NAMED: ReadonlyMap<string, string> = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
]);
/**
 * Characters that Go prints unescaped: letters, marks, numbers, punctuation, symbols and the space.
 */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Quotes a text as strconv.Quote. */
export function quoteGo(text: string, isAscii = false): string {
  return `"${[...text].map((each) => escape(each, '"', isAscii)).join('')}"`;
}

/** Quotes a code point as strconv.QuoteRune. */
export function quoteRune(code: number, isAscii = false): string {
  const isSurrogate = code >= 0xd800 && code < 0xe000;
  return `'${escape(String.fromCodePoint(isSurrogate ? 0xfffd : code), "'", isAscii)}'`;
}

export function isPrintable(character: string): boolean {
  return PRINTABLE.test(character);
}

function escape(character: string, quote: string, isAscii: boolean): string {
  if (character === quote) return `\\${quote}`;
  const named = NAMED.get(character);
  if (named !== undefined) return named;
  const code = character.codePointAt(0) ?? 0;
  if (isPrintable(character) && (!isAscii || code < 0x7f)) return character;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}
