/** Quotes text as one word of a shell. No variable can hold a NUL. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll('\0', '').replaceAll("'", `'\\''`)}'`;
}
