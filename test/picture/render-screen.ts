import type { IBufferCell, Terminal } from '@xterm/headless';

/**
 * Sizes in the unit of the SVG. A column has the width of most monospace fonts at this size (0.6
 * em).
 */
const FONT_SIZE = 14;
const COLUMN = 8.4;
const ROW = 19;
const PADDING = 16;
const TITLE_BAR = 24;

const INK = '#d6deeb';
const FAINT = '#8390a7';
/** The sixteen colours of a terminal; the shown programs use no others. */
const PALETTE = [
  '#3b4252', '#ef6b73', '#7fd88f', '#f2c26b', '#82aaff', '#c792ea', '#5fd7e7', '#d6deeb',
  '#637087', '#ff8b92', '#a5e8b0', '#ffd894', '#a6c3ff', '#dcb0f5', '#93e8f3', '#ffffff',
] as const; // prettier-ignore

interface Run {
  readonly column: number;
  readonly style: string;
  text: string;
}

/**
 * Renders a terminal's screen down to the last row with text, as an SVG without fonts, scripts or
 * external files.
 */
export function renderScreen(screen: Terminal): string {
  const rows = readRows(screen);
  const width = 2 * PADDING + screen.cols * COLUMN;
  const height = TITLE_BAR + 2 * PADDING + rows.length * ROW;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace" font-size="${FONT_SIZE}">`,
    '<title>gnt-instance add: the image is being written</title>',
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="9" fill="#161b26" stroke="#39435a"/>`,
    ...['#ef6b73', '#f2c26b', '#7fd88f'].map(
      (color, index) => `<circle cx="${20 + 20 * index}" cy="18" r="6" fill="${color}"/>`,
    ),
    ...rows.flatMap((runs, row) => runs.map((run) => renderRun(run, row))),
    '</svg>',
  ].join('\n')}\n`;
}

function readRows(screen: Terminal): readonly (readonly Run[])[] {
  const { active } = screen.buffer;
  const rows = Array.from({ length: screen.rows }, (_, row) => readRow(screen, active.baseY + row));
  return rows.slice(0, rows.findLastIndex((runs) => runs.length > 0) + 1);
}

/**
 * Joins neighbouring cells of one style. A character outside ASCII stays separate, because its
 * fallback font may have another width.
 */
function readRow(screen: Terminal, y: number): readonly Run[] {
  const runs: Run[] = [];
  const line = screen.buffer.active.getLine(y);
  for (let column = 0; column < screen.cols; column += 1) {
    const cell = line?.getCell(column);
    if (!cell || cell.getWidth() === 0) continue;
    const text = cell.getChars() || ' ';
    const style = styleOf(cell);
    const last = runs.at(-1);
    const isNext = last && last.column + last.text.length === column && last.style === style;
    if (isNext && joins(last.text, text)) last.text += text;
    else runs.push({ column, style, text });
  }
  return runs
    .map((run) => ({ ...run, text: run.text.trimEnd() }))
    .filter(({ text }) => text !== '');
}

/** Tells whether two texts may be joined: ASCII with ASCII, blocks with blocks of the same kind. */
function joins(before: string, next: string): boolean {
  if (isBlock(next)) return before.startsWith(next);
  return /^[\x20-\x7e]/.test(before) && /^[\x20-\x7e]$/.test(next);
}

function isBlock(text: string): boolean {
  return /^[█░]/.test(text);
}

function styleOf(cell: IBufferCell): string {
  const ink = cell.isFgPalette() ? (PALETTE[cell.getFgColor()] ?? INK) : INK;
  const fill = cell.isDim() ? FAINT : ink;
  return `fill="${fill}"${cell.isBold() ? ' font-weight="bold"' : ''}`;
}

function renderRun({ column, style, text }: Run, row: number): string {
  const x = round(PADDING + column * COLUMN);
  const top = TITLE_BAR + PADDING + row * ROW;
  const width = round(text.length * COLUMN);
  if (isBlock(text)) {
    const opacity = text.startsWith('█') ? '' : ' fill-opacity="0.22"';
    return `<rect x="${x}" y="${top + 4}" width="${width}" height="${ROW - 8}" ${style}${opacity}/>`;
  }
  const size = text.length > 1 ? ` textLength="${width}" lengthAdjust="spacingAndGlyphs"` : '';
  return `<text x="${x}" y="${top + 14}" ${style}${size} xml:space="preserve">${escape(text)}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
