import type { Contents } from '../content-keys.ts';

const MAX_COLUMNS = 120;
const MAX_README_LINES = 200;

/** Finds documents with long lines, one finding for each document. */
export function findLongLines(contents: Contents): readonly string[] {
  return [...contents].flatMap(([path, text]) => {
    if (!path.endsWith('.md') || path.startsWith('fixtures/')) return [];
    const long = text.split('\n').flatMap((line, index) => (isLong(line) ? [index + 1] : []));
    const [first] = long;
    if (first === undefined) return [];
    return [`${path}:${first}: ${long.length} lines have more than ${MAX_COLUMNS} characters`];
  });
}

/** Tells whether a line is too long. A link or path that cannot be broken may be longer. */
function isLong(line: string): boolean {
  return line.length > MAX_COLUMNS && /\S\s+\S/.test(line.slice(0, MAX_COLUMNS).trimStart());
}

export function findLongReadme(contents: Contents): readonly string[] {
  const lines = (contents.get('README.md') ?? '').trimEnd().split('\n').length;
  return lines <= MAX_README_LINES
    ? []
    : [`README.md: ${lines} lines, at most ${MAX_README_LINES}: move details into docs/`];
}
