import { stripVTControlCharacters } from 'node:util';
import { plainText } from '#shared/text/plain-text.ts';

/** Nearly all text; what looks for each danger takes a list most of its time. */
const HARMLESS = /^[ -~]*$/;

/**
 * Text from guests, scripts and downloads, safe for a terminal and one line long: no escape
 * sequence, no control character. A tab becomes a space, everything else that does not print
 * becomes `?`.
 */
export function sanitizeLine(text: string): string {
  if (HARMLESS.test(text)) return text;
  return plainText(stripVTControlCharacters(text).replaceAll(/[\t\r\n]+/g, ' '));
}

/** Does what {@link sanitizeLine} does, and keeps line breaks and tabs. */
export function sanitizeText(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/\r$/, '').split('\t').map(sanitizeLine).join('\t'))
    .join('\n');
}
