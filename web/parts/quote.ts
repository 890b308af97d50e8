/** Returns a word as a POSIX shell reads it back. Pure. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns a command line of words, without those that are undefined. Pure. */
export function commandLine(...words: readonly (string | undefined)[]): string {
  return words.flatMap((word) => (word === undefined ? [] : [quoteWord(word)])).join(' ');
}
