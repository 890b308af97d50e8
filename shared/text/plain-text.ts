/**
 * Text that others wrote, of several lines, in which nothing steers a terminal or misleads who
 * reads it: control characters other than tabs and line feeds, what turns the direction of the text
 * behind it round, and other characters that end a line become `?`.
 */
export function plainText(text: string): string {
  return text
    .replaceAll(/[^\P{Cc}\n\t]/gu, '?')
    .replaceAll(/[\p{Bidi_Control}\u2028\u2029]/gu, '?');
}
