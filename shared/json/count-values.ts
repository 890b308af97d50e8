const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/**
 * How many values a JSON text has at most, without making one of them: as many as it has commas,
 * braces and brackets outside of its strings, and one more. A quarter of a MiB of `{},` takes a
 * parser ten times as long, and leaves a hundred thousand objects to be collected.
 * @param limit counting ends beyond it
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
