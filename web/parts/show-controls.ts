/**
 * Controls except tab and line feed (Cc), and Unicode's format characters, among them those that
 * change the direction of a text (Cf, UAX 9).
 */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Returns the text with hidden characters as `U+202E`. Pure. */
export function showControls(text: string): string {
  return text.replace(HIDDEN, (each) => {
    const code = each.codePointAt(0) ?? 0;
    return `\u2039U+${code.toString(16).toUpperCase().padStart(4, '0')}\u203a`;
  });
}
