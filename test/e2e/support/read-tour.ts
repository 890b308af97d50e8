/** One command of a page's `console` blocks, and the output that the page shows for it. */
export interface TourStep {
  /** From the prompt `node2# `; empty for `# `. */
  readonly host: string;
  readonly command: string;
  /** Lines; `…` stands for any number of lines. */
  readonly expected: readonly string[];
}

const BLOCK = /^```console(?: +(no-run)(?: reason="([^"]+)")?)? *\n(.*?)^```$/gms;
const HERE_DOCUMENT = /<<'(\w+)'$/;
const PROMPT = /^(\w*)# (.*)$/;

/**
 * Reads the commands of a page. They follow a prompt, and continue after a backslash or as a here
 * document (`<<'END'`); the lines up to the next prompt are the output. Blocks with `no-run` are
 * left out.
 * @throws Error for `no-run` without a reason
 */
export function readTour(markdown: string): readonly TourStep[] {
  const steps: { host: string; command: string; expected: string[] }[] = [];
  for (const [start, noRun, reason, block = ''] of markdown.matchAll(BLOCK)) {
    if (noRun !== undefined && reason === undefined)
      throw new Error(`no-run without a reason: ${start}`);
    if (noRun !== undefined) continue;
    let isCommand = false;
    let documentEnd: string | undefined;
    for (const line of block.trimEnd().split('\n')) {
      const step = steps.at(-1);
      const [, host = '', command] = (documentEnd === undefined && PROMPT.exec(line)) || [];
      if (command !== undefined) steps.push({ host, command, expected: [] });
      else if (isCommand && step) step.command += `\n${line}`;
      else step?.expected.push(line);
      if (documentEnd === undefined) documentEnd = HERE_DOCUMENT.exec(line)?.[1];
      else if (line === documentEnd) documentEnd = undefined;
      isCommand = line.endsWith('\\') || documentEnd !== undefined;
    }
  }
  return steps;
}

/**
 * Compares output with the output that a page shows. Numbers and UUIDs may differ.
 * @returns the first expected line that is not in its place; undefined when all are
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

/** Replaces times, sizes and ids, with the padding of columns that hold them. */
function withoutNumbers(line: string): string {
  return (
    line
      .trimEnd()
      .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
      .replace(/\d+(\.\d+)*/g, 'N')
      // Seconds on a fast host are minutes on a slow one.
      .replace(/\bN min N s\b/g, 'N s')
      .replace(/ +/g, ' ')
  );
}
