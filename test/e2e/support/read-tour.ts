/** One command of a document's `console` blocks, and what it is said to print. */
export interface TourStep {
  readonly command: string;
  /** Lines; one that is `…` stands for any number of them. */
  readonly expected: readonly string[];
}

/**
 * Commands follow `# ` and go on after a backslash; the lines up to the next command are what it
 * prints.
 */
export function readTour(markdown: string): readonly TourStep[] {
  const steps: { command: string; expected: string[] }[] = [];
  for (const [, block = ''] of markdown.matchAll(/^```console\n(.*?)^```$/gms)) {
    let isCommand = false;
    for (const line of block.trimEnd().split('\n')) {
      const step = steps.at(-1);
      if (line.startsWith('# ')) steps.push({ command: line.slice(2), expected: [] });
      else if (isCommand && step) step.command += `\n${line}`;
      else step?.expected.push(line);
      isCommand = line.endsWith('\\');
    }
  }
  return steps;
}

/**
 * @returns the first expected line that the output does not have in its place; undefined when all
 * is as expected
 */
export function findDifference(
  expected: readonly string[],
  output: readonly string[],
): string | undefined {
  let at = 0;
  let isGap = false;
  for (const line of expected) {
    if (line === '…') {
      isGap = true;
      continue;
    }
    const wanted = withoutNumbers(line);
    const found = output.findIndex(
      (candidate, index) => index >= at && withoutNumbers(candidate) === wanted,
    );
    if (found < 0 || (!isGap && found !== at)) return line;
    at = found + 1;
    isGap = false;
  }
  return isGap || at === output.length ? undefined : `nothing more after line ${at}`;
}

/** Times, sizes and ids differ from run to run; so does the padding of columns that hold them. */
function withoutNumbers(line: string): string {
  return (
    line
      .trimEnd()
      .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
      .replace(/\d+(\.\d+)*/g, 'N')
      // What takes seconds on one machine takes minutes on another.
      .replace(/\bN min N s\b/g, 'N s')
      .replace(/ +/g, ' ')
  );
}
