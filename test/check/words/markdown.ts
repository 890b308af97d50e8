export interface Line {
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

export interface CodeBlock {
  /** Line of the fence, from 1. */
  readonly number: number;
  /** The words after the fence: `console no-run reason="…"`. */
  readonly info: string;
  readonly lines: readonly Line[];
}

/** Splits a document into fenced code blocks and all other lines. */
export function splitMarkdown(text: string): {
  readonly blocks: readonly CodeBlock[];
  readonly prose: readonly Line[];
} {
  const blocks: CodeBlock[] = [];
  const prose: Line[] = [];
  let open: { fence: string; block: CodeBlock & { lines: Line[] } } | null = null;
  for (const [index, line] of text.split('\n').entries()) {
    const number = index + 1;
    const [, fence = '', info = ''] = /^\s*(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    if (open !== null) {
      if (fence.startsWith(open.fence) && info.trim() === '') open = null;
      else open.block.lines.push({ number, text: line });
    } else if (fence !== '') {
      open = { fence, block: { number, info: info.trim(), lines: [] } };
      blocks.push(open.block);
    } else prose.push({ number, text: line });
  }
  return { blocks, prose };
}

/** Returns the lines of a document outside of code blocks. */
export function proseLines(text: string): readonly Line[] {
  return splitMarkdown(text).prose;
}
