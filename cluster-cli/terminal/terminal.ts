import type { ReadStream, WriteStream } from 'node:tty';
import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';
export type Paint = (style: Style, text: string) => string;

/** Capabilities of a stream. main reads them once from the environment. */
export interface Appearance {
  readonly isTerminal: boolean;
  readonly hasColor: boolean;
  readonly hasUnicode: boolean;
}

export interface Terminal {
  readonly stdin: NodeJS.ReadStream & Partial<ReadStream>;
  readonly stdout: NodeJS.WriteStream & Partial<WriteStream>;
  readonly stderr: NodeJS.WriteStream & Partial<WriteStream>;
  readonly output: Appearance;
  readonly errors: Appearance;
}

export function createPaint(appearance: Appearance): Paint {
  if (!appearance.hasColor) return (_style, text) => text;
  return (style, text) => styleText(style, text, { validateStream: false });
}

export interface AppearanceEnvironment {
  readonly NO_COLOR?: string | undefined;
  readonly TERM?: string | undefined;
  readonly LC_ALL?: string | undefined;
  readonly LC_CTYPE?: string | undefined;
  readonly LANG?: string | undefined;
}

/**
 * Reads the capabilities. NO_COLOR: see no-color.org; any non-empty value counts. A `dumb` terminal
 * cannot move its cursor.
 */
export function readAppearance(isTty: boolean, environment: AppearanceEnvironment): Appearance {
  const isTerminal = isTty && environment.TERM !== 'dumb';
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || '';
  return {
    isTerminal,
    hasColor: isTerminal && !environment.NO_COLOR,
    hasUnicode: /utf-?8/i.test(locale),
  };
}

/** Width of a pipe, and of a terminal of unknown size. */
export const DEFAULT_COLUMNS = 80;

/**
 * Returns the columns for help: the terminal's, else `COLUMNS`, at most 80. A serial console
 * without a size reports 0 columns.
 */
export function chooseHelpColumns(
  ofTerminal: number | undefined,
  { COLUMNS = '' }: { readonly COLUMNS?: string | undefined },
): number {
  const given = /^\d{1,5}$/.test(COLUMNS) ? Number(COLUMNS) : 0;
  return Math.min(ofTerminal || given || DEFAULT_COLUMNS, DEFAULT_COLUMNS);
}
