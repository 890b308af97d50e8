/** Shorter values would mask ordinary text ("yes", "1") and tell where they stand. */
const MIN_MASKED_LENGTH = 4;

/**
 * Replaces every occurrence of the given values, and of each of their lines (without the blanks
 * around it), by `<redacted>`.
 */
export function createMask(values: Iterable<string>): (text: string) => string {
  const needles = new Set<string>();
  for (const value of values) {
    for (const part of [value, ...value.split('\n')]) {
      const candidate = part.trim();
      if (candidate.length >= MIN_MASKED_LENGTH) needles.add(candidate);
    }
  }
  // Longest first, so that a value that contains another one is masked whole.
  const ordered = [...needles].sort((a, b) => b.length - a.length);
  return (text) =>
    ordered.reduce((masked, needle) => masked.replaceAll(needle, '<redacted>'), text);
}
