export type Ini = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * Writes the format of Python's configparser: `key = value`, with further lines of a value
 * indented. A carriage return ends a line, as in Python. Ganeti interpolates the values that it
 * reads: callers write `%%` for a percent sign in those. Pure.
 */
export function formatIni(ini: Ini): string {
  const sections = Object.entries(ini).map(([name, values]) => {
    const lines = Object.entries(values).map(
      ([key, value]) => `${key} = ${value.replaceAll(/\r\n?|\n/g, '\n\t')}\n`,
    );
    return `[${name}]\n${lines.join('')}\n`;
  });
  return sections.join('');
}

/**
 * Reads the output of configparser and `formatIni`. Folds keys to lower case as Python does.
 * @throws Error naming the line
 */
export function parseIni(text: string): Ini {
  const sections = new Map<string, Map<string, string>>();
  let section: Map<string, string> | undefined;
  let key: string | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\[([^\]]+)\]\s*$/.exec(line)?.[1];
    const pair = parsePair(line);
    if (header !== undefined) {
      section = sections.get(header) ?? new Map<string, string>();
      sections.set(header, section);
      key = undefined;
    } else if (/^\s/.test(line) && section && key !== undefined) {
      section.set(key, `${section.get(key)}\n${line.replace(/^\s+/, '')}`);
    } else if (line === '' || /^[#;]/.test(line)) {
      key = undefined;
    } else if (pair && section) {
      key = pair.key.toLowerCase();
      section.set(key, pair.value);
    } else {
      throw new Error(`line ${index + 1} is neither a section nor a value`);
    }
  }
  return Object.fromEntries(
    [...sections].map(([name, values]) => [name, Object.fromEntries(values)]),
  );
}

/**
 * Splits `key = value` or `key: value` and drops one blank after the separator. A search by
 * position avoids the backtracking of a regular expression over many blanks.
 */
function parsePair(line: string): { readonly key: string; readonly value: string } | undefined {
  const at = line.search(/[=:]/);
  if (at < 1 || /^[\s#;[]/.test(line)) return undefined;
  const value = line.slice(at + 1).replace(/^\s/, '');
  return value.includes('\r') ? undefined : { key: line.slice(0, at).trimEnd(), value };
}
