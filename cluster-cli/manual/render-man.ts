import { type Block, type Page, wrap } from './page.ts';

/** mandoc(1) warns about source lines of more than 80 bytes. */
const COLUMNS = 80;

/**
 * Renders a page in man(7) macros.
 * @param date day of the page, `2026-11-21`
 */
export function renderMan(page: Page, date: string): string {
  const seeAlso = page.seeAlso ?? [];
  const lines = [
    `.TH ${page.name.toUpperCase()} ${page.section} ${date} gnt "gnt manual"`,
    '.SH NAME',
    ...renderText(`${page.name} - ${page.purpose}`),
    ...renderBlocks(page.blocks),
    ...(seeAlso.length === 0 ? [] : ['.SH SEE ALSO', ...renderSeeAlso(seeAlso)]),
  ];
  return `${lines.join('\n')}\n`;
}

function renderSeeAlso(pages: readonly string[]): readonly string[] {
  return pages.map((page, index) => {
    const [name = '', section = ''] = page.split(/[()]/);
    return `.BR ${escapeMan(name)} (${section})${index < pages.length - 1 ? ',' : ''}`;
  });
}

/** Renders blocks. A paragraph macro right after a heading would be redundant. */
function renderBlocks(blocks: readonly Block[]): readonly string[] {
  return blocks.flatMap((block, index) =>
    renderBlock(block, blocks[index - 1]?.kind === 'heading'),
  );
}

function renderBlock(block: Block, isFirst: boolean): readonly string[] {
  const begin = isFirst ? [] : ['.PP'];
  switch (block.kind) {
    case 'heading':
      return [renderHeading(block.text, block.level)];
    case 'paragraph':
      return [...begin, ...renderText(block.text)];
    case 'terms':
      return block.items.flatMap(({ term, text }) => renderTerm(term, text));
    case 'bullets':
      return block.items.flatMap((item) => ['.IP \\(bu 2', ...renderText(item)]);
    case 'code':
      return [...begin, '.RS 4', '.nf', ...block.text.split('\n').map(escapeMan), '.fi', '.RE'];
    case 'table':
      return block.rows.flatMap(([first = '', ...others]) =>
        renderTerm(first.replaceAll('`', ''), labelled(block.head.slice(1), others)),
      );
  }
}

function renderHeading(text: string, level: number): string {
  const shown = escapeMan(text.replaceAll('`', ''));
  if (level === 1) return `.SH ${shown.toUpperCase()}`;
  return `.SS ${shown}`;
}

function renderTerm(term: string, text: string): readonly string[] {
  const shown = renderText(text);
  return ['.TP', `\\fB${escapeMan(term)}\\fR`, ...(shown.length === 0 ? ['\\&'] : shown)];
}

/** Returns the cells of a row after the first, labelled with their column heads, for a list. */
export function labelled(heads: readonly string[], cells: readonly string[]): string {
  if (heads.length === 1) return cells[0] ?? '';
  return heads
    .flatMap((head, index) => {
      const cell = cells[index] ?? '';
      return cell === '' ? [] : [`${head}: ${cell}${/[.:;]$/.test(cell) ? '' : '.'}`];
    })
    .join(' ');
}

function renderText(text: string): readonly string[] {
  return wrap(text, COLUMNS, (line) => Buffer.byteLength(renderLine(line))).map(renderLine);
}

function renderLine(text: string): string {
  return escapeMan(text).replaceAll(/`([^`]*)`/g, (_, span: string) => `\\fB${span}\\fR`);
}

/**
 * Escapes text for roff: a backslash starts an escape, a hyphen is a minus, and a dot or quote at
 * the start of a line is a request.
 */
function escapeMan(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('\t', '        ')
    .replaceAll('’', '\\(cq')
    .replaceAll('…', '...')
    .replaceAll(/^(`?)([.'])/gm, '\\&$1$2');
}
