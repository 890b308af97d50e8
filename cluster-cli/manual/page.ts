/** A page of the reference, independent of its format: Markdown and man(7) are rendered from it. */
export interface Page {
  /** `gnt-instance-add`; also the name of its file. */
  readonly name: string;
  /** Section of the manual. */
  readonly section: 5 | 7 | 8;
  /** One line without a full stop, for the index. */
  readonly purpose: string;
  readonly blocks: readonly Block[];
  /** Names of other manual pages with their section: `gnt-noded(8)`. */
  readonly seeAlso?: readonly string[];
}

/** Text may contain `code` in backticks and no other markup. */
export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'terms'; readonly items: readonly Term[] }
  | { readonly kind: 'bullets'; readonly items: readonly string[] }
  | { readonly kind: 'code'; readonly text: string; readonly info?: string }
  | {
      readonly kind: 'table';
      readonly head: readonly string[];
      readonly rows: readonly (readonly string[])[];
    };

export interface Term {
  /** Shown as code. */
  readonly term: string;
  readonly text: string;
}

export function heading(text: string, level = 1): Block {
  return { kind: 'heading', level, text };
}

export function paragraph(text: string): Block {
  return { kind: 'paragraph', text };
}

export function terms(items: readonly (readonly [term: string, text: string])[]): Block {
  return { kind: 'terms', items: items.map(([term, text]) => ({ term, text })) };
}

export function bullets(items: readonly string[]): Block {
  return { kind: 'bullets', items };
}

export function code(text: string, info?: string): Block {
  return { kind: 'code', text, ...(info !== undefined && { info }) };
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): Block {
  return { kind: 'table', head, rows };
}

/** Moves headings one level down, for a page that becomes part of another. */
export function nest(blocks: readonly Block[]): readonly Block[] {
  return blocks.map((block) =>
    block.kind === 'heading' ? { ...block, level: block.level + 1 } : block,
  );
}

/**
 * Breaks text into lines. A `code` span stays on one line.
 * @param widthOf returns the columns of a line
 */
export function wrap(
  text: string,
  columns: number,
  widthOf: (line: string) => number = (line) => line.length,
): readonly string[] {
  const lines: string[] = [];
  let line = '';
  // A span includes the punctuation around it, so that no line begins with a full stop.
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return line === '' ? lines : [...lines, line];
}
