const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/**
 * Returns an upper bound of the values in a JSON text without parsing it: the number of commas,
 * braces and brackets outside of strings, plus one. A quarter of a MiB of `{},` takes a parser ten
 * times as long, and leaves a hundred thousand objects for the collector.
 * @param limit counting stops beyond it
 */
export function countJsonValues(text: Uint8Array, limit: number): number {
  let count = 1;
  let isInString = false;
  for (let at = 0; at < text.length && count <= limit; at += 1) {
    const byte = text[at];
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInString = false;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === COMMA || byte === BRACE || byte === BRACKET) count += 1;
  }
  return count;
}
