const QUOTED = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Whether LVM looks at a device, by what `lvmconfig --typeconfig full` prints of its filters. Of
 * one filter the first pattern that a name matches counts, and a name that is taken counts more
 * than one that is not (lvm.conf(5)). Pure.
 * @param names all that the device has
 */
export function looksAt(config: string, names: readonly string[]): boolean {
  const filters = config.split('\n').filter((line) => /^\s*(?:global_)?filter=/.test(line));
  return filters.every((line) => {
    const patterns = [...line.matchAll(QUOTED)].map(([, pattern = '']) => pattern);
    const verdicts = names.map((name) => judge(patterns, name));
    return verdicts.includes('taken') || !verdicts.includes('refused');
  });
}

function judge(patterns: readonly string[], name: string): 'taken' | 'refused' | undefined {
  const found = patterns.find((pattern) => matches(pattern, name));
  if (found === undefined) return undefined;
  return found.startsWith('a') ? 'taken' : 'refused';
}

/** `a|REGEX|` or `r/REGEX/`. */
function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern.slice(2, -1)).test(name);
  } catch (error) {
    // Another dialect than ours: a pattern that cannot be read keeps nothing out.
    if (error instanceof SyntaxError) return pattern.startsWith('a');
    throw error;
  }
}
