/**
 * Returns foreign text of several lines without characters that control a terminal or mislead a
 * reader. Control characters other than tabs and line feeds, characters that change the direction
 * of the text, and other characters that end a line become `?`.
 */
export function plainText(text: string): string {
  return text
    .replaceAll(/[^\P{Cc}\n\t]/gu, '?')
    .replaceAll(/[\p{Bidi_Control}\u2028\u2029]/gu, '?');
}
