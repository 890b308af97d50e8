/**
 * Controls (Cc) except tab and line feed, and Unicode's format characters (Cf), which include the
 * changes of direction of UAX 9.
 */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Returns the text with hidden characters as `U+202E`. Pure. */
export function showControls(text: string): string {
  return text.replace(HIDDEN, (each) => {
    const code = each.codePointAt(0) ?? 0;
    return `\u2039U+${code.toString(16).toUpperCase().padStart(4, '0')}\u203a`;
  });
}
