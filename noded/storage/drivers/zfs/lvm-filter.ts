const QUOTED = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Returns true if LVM scans a device, from the filters in the output of `lvmconfig --typeconfig
 * full`. The first matching pattern of a filter decides for a name. LVM scans a device if each
 * filter accepts one of its names or matches none (lvm.conf(5)). Pure.
 * @param names of the device
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

/** The pattern is `a|REGEX|` or `r/REGEX/`. */
function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern.slice(2, -1)).test(name);
  } catch (error) {
    // LVM's regular expressions differ from JavaScript's. A pattern that cannot be parsed excludes
    // no device.
    if (error instanceof SyntaxError) return pattern.startsWith('a');
    throw error;
  }
}
