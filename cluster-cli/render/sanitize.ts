import { stripVTControlCharacters } from 'node:util';

/** Nearly all text; what looks for each danger takes a list most of its time. */
const HARMLESS = /^[ -~]*$/;

/**
 * Text from guests, scripts and downloads, safe for a terminal and one line long: no escape
 * sequence, no control character. A tab becomes a space, everything else that does not print
 * becomes `?`.
 */
export function sanitizeLine(text: string): string {
  if (HARMLESS.test(text)) return text;
  return (
    stripVTControlCharacters(text)
      .replaceAll(/[\t\r\n]+/g, ' ')
      // C0, DEL, C1, other line breaks, and the characters that reverse the direction of what
      // follows.
      .replaceAll(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '?')
  );
}

/** As {@link sanitizeLine}, keeping line breaks and tabs. */
export function sanitizeText(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/\r$/, '').split('\t').map(sanitizeLine).join('\t'))
    .join('\n');
}
