/** Returns the most similar candidate, or null if none is similar enough. */
export function suggest(word: string, candidates: readonly string[]): string | null {
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: { readonly candidate: string; readonly distance: number } | null = null;
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate);
    if (distance <= limit && (best === null || distance < best.distance)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate ?? null;
}

/** Longest compared word. The cost is the product of the lengths. */
const MAX_COMPARED = 64;

/**
 * Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
 */
function editDistance(a: string, b: string): number {
  if (a.length > MAX_COMPARED || b.length > MAX_COMPARED) return MAX_COMPARED;
  let beforeLast: readonly number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + cost,
        isSwap ? (beforeLast[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
