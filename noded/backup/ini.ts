/** Sections of keys and values. */
export type Ini = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * As Python's configparser writes it: `key = value`, further lines of a value indented. A `%` is kept as it is (Ganeti reads and writes
 * these files without interpolation). Pure.
 */
export function formatIni(ini: Ini): string {
  const sections = Object.entries(ini).map(([name, values]) => {
    const lines = Object.entries(values).map(
      ([key, value]) => `${key} = ${value.replaceAll('\n', '\n\t')}\n`,
    );
    return `[${name}]\n${lines.join('')}\n`;
  });
  return sections.join('');
}

/**
 * Reads what configparser and `formatIni` write. Keys are folded to lower case as Python folds them.
 * @throws Error naming the line
 */
export function parseIni(text: string): Ini {
  const sections = new Map<string, Map<string, string>>();
  let section: Map<string, string> | undefined;
  let key: string | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\[([^\]]+)\]\s*$/.exec(line)?.[1];
    const pair = /^([^\s=:#;[][^=:]*?)\s*[=:]\s?(.*)$/.exec(line);
    if (header !== undefined) {
      section = sections.get(header) ?? new Map<string, string>();
      sections.set(header, section);
      key = undefined;
    } else if (/^\s/.test(line) && section && key !== undefined) {
      section.set(key, `${section.get(key)}\n${line.replace(/^\s+/, '')}`);
    } else if (line === '' || /^[#;]/.test(line)) {
      key = undefined;
    } else if (pair && section) {
      key = (pair[1] ?? '').toLowerCase();
      section.set(key, pair[2] ?? '');
    } else {
      throw new Error(`line ${index + 1} is neither a section nor a value`);
    }
  }
  return Object.fromEntries(
    [...sections].map(([name, values]) => [name, Object.fromEntries(values)]),
  );
}
