import { stripVTControlCharacters } from 'node:util';
import { plainText } from '#shared/text/plain-text.ts';

/** Fast path for nearly all text: the full check would take most of a list's time. */
const HARMLESS = /^[ -~]*$/;

/**
 * Makes text from guests, scripts and downloads safe for a terminal, on one line: without escape
 * sequences and control characters. A tab becomes a space, other unprintable characters become `?`.
 */
export function sanitizeLine(text: string): string {
  if (HARMLESS.test(text)) return text;
  return plainText(stripVTControlCharacters(text).replaceAll(/[\t\r\n]+/g, ' '));
}

/** Does the same as {@link sanitizeLine}, and keeps line breaks and tabs. */
export function sanitizeText(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/\r$/, '').split('\t').map(sanitizeLine).join('\t'))
    .join('\n');
}
