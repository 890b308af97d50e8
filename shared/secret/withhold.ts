import { createMask } from './mask.ts';

/** Length of an accidental match of a text with a hidden value. */
const MAX_COMMON_LENGTH = 7;
export const WITHHELD = '<redacted: it may quote a private or secret value>';

/**
 * Returns a mask for the text of unknown errors. Such a text may quote a value only in part (Node
 * cuts long arguments), so a text that still has eight characters in common with a value is
 * withheld as a whole.
 */
export function createWithholdingMask(values: readonly string[]): (text: string) => string {
  const mask = createMask(values);
  return (text) => {
    const masked = mask(text);
    const pieces = piecesOf(masked);
    return values.some((value) => hasPieceOf(value, pieces)) ? WITHHELD : masked;
  };
}

const PIECE_LENGTH = MAX_COMMON_LENGTH + 1;

function piecesOf(text: string): ReadonlySet<string> {
  const pieces = new Set<string>();
  for (let at = 0; at + PIECE_LENGTH <= text.length; at += 1)
    pieces.add(text.slice(at, at + PIECE_LENGTH));
  return pieces;
}

function hasPieceOf(value: string, pieces: ReadonlySet<string>): boolean {
  for (let at = 0; at + PIECE_LENGTH <= value.length; at += 1)
    if (pieces.has(value.slice(at, at + PIECE_LENGTH))) return true;
  return false;
}
