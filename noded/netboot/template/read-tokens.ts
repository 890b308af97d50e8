import { errorAt } from './template-error.ts';

export interface TemplateSource {
  readonly name: string;
  readonly text: string;
}

type TokenKind =
  | 'text'
  | 'left'
  | 'right'
  | 'space'
  | 'keyword'
  | 'identifier'
  | 'field'
  | 'variable'
  | 'string'
  | 'raw'
  | 'char'
  | 'number'
  /** One of `. ( ) | , = :=`, or any other character, which the parser refuses. */
  | 'sign'
  | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** As written; a field is without its dot. */
  readonly text: string;
  readonly offset: number;
}

const KEYWORDS: ReadonlySet<string> = new Set([
  ...['block', 'break', 'continue', 'define', 'else', 'end', 'if', 'nil', 'range', 'template'],
  ...['with', 'true', 'false'],
]);
const WORD = /[\p{L}\p{Nd}_]+/uy;
const SPACES = /[ \t\r\n]+/y;
const QUOTED = /"(?:[^"\\\n]|\\[^\n])*"/uy;
const RAW = /`[^`]*`/y;
const CHAR = /'(?:[^'\\\n]|\\[^\n])+'/uy;
const NUMBER =
  /[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*|0[bB][01_]*|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)/y;
const AFTER_WORD = /[ \t\r\n.,|:)(]|\}\}|$/y;

/**
 * Splits a template into Go's tokens. Trim markers and comments are already applied.
 * @param spend takes steps before each further read
 * @throws TemplateError, and errors of `spend`
 */
export function readTokens(
  source: TemplateSource,
  spend: (steps: number) => void,
): readonly Token[] {
  const { text } = source;
  const tokens: Token[] = [];
  let at = 0;
  let trimsNext = false;
  for (;;) {
    const open = text.indexOf('{{', at);
    const trims = open >= 0 && /^-[ \t\r\n]/.test(text.slice(open + 2, open + 4));
    const piece = text.slice(at, open < 0 ? undefined : open);
    const kept = trimPiece(piece, trimsNext, trims);
    if (kept !== '') tokens.push({ kind: 'text', text: kept, offset: at });
    if (open < 0) break;
    const start = open + (trims ? 4 : 2);
    const after = text.startsWith('/*', start)
      ? skipComment(source, start)
      : readAction(source, open, start, tokens, spend);
    trimsNext = after.trims;
    spend(1 + (piece.length >> 8));
    at = after.at;
  }
  tokens.push({ kind: 'end', text: '', offset: text.length });
  return tokens;
}

function trimPiece(piece: string, left: boolean, right: boolean): string {
  const begun = left ? piece.replace(/^[ \t\r\n]+/, '') : piece;
  if (!right) return begun;
  // A regular expression would take quadratic time for a run of spaces.
  let end = begun.length;
  while (end > 0 && ' \t\r\n'.includes(begun.charAt(end - 1))) end -= 1;
  return begun.slice(0, end);
}

interface AfterAction {
  readonly at: number;
  readonly trims: boolean;
}

function closeAt(text: string, at: number): AfterAction | null {
  if (text.startsWith('}}', at)) return { at: at + 2, trims: false };
  if (/^[ \t\r\n]-\}\}$/.test(text.slice(at, at + 4))) return { at: at + 4, trims: true };
  return null;
}

function skipComment(source: TemplateSource, start: number): AfterAction {
  const end = source.text.indexOf('*/', start + 2);
  if (end < 0) throw errorAt(source, start, 'the comment is not closed');
  const after = closeAt(source.text, end + 2);
  if (after === null) throw errorAt(source, end, 'a comment must end directly before }}');
  return after;
}

function readAction(
  source: TemplateSource,
  open: number,
  start: number,
  tokens: Token[],
  spend: (steps: number) => void,
): AfterAction {
  const { text } = source;
  const match = (pattern: RegExp, offset: number): string | null => {
    pattern.lastIndex = offset;
    return pattern.exec(text)?.[0] ?? null;
  };
  tokens.push({ kind: 'left', text: '{{', offset: open });
  let at = start;
  let depth = 0;
  for (;;) {
    const closed = closeAt(text, at);
    if (closed !== null) {
      if (depth > 0) throw errorAt(source, at, 'a parenthesis is not closed');
      tokens.push({ kind: 'right', text: '}}', offset: at });
      return closed;
    }
    if (at >= text.length) throw errorAt(source, open, 'the action is not closed');
    const spaces = match(SPACES, at);
    if (spaces !== null) {
      // The last space may belong to a trim marker.
      const isMarker = closeAt(text, at + spaces.length - 1) !== null;
      const length = isMarker ? spaces.length - 1 : spaces.length;
      if (length > 0) tokens.push({ kind: 'space', text: ' ', offset: at });
      at += length;
      continue;
    }
    const token = readToken(source, at, match);
    if (token.text === '(') depth += token.kind === 'sign' ? 1 : 0;
    if (token.text === ')' && token.kind === 'sign') depth -= 1;
    if (depth < 0) throw errorAt(source, at, "unexpected ')'");
    tokens.push(token);
    spend(1 + (token.text.length >> 3));
    at += token.text.length + (token.kind === 'field' ? 1 : 0);
  }
}

type Match = (pattern: RegExp, offset: number) => string | null;

function readToken(source: TemplateSource, at: number, match: Match): Token {
  const { text } = source;
  const first = text.charAt(at);
  const quoted = readQuoted(source, at, match);
  if (quoted !== null) return quoted;
  if (first === '.' && !/[0-9]/.test(text.charAt(at + 1))) {
    const name = match(WORD, at + 1);
    if (name === null) return ended(source, { kind: 'sign', text: '.', offset: at }, at + 1, match);
    return ended(source, { kind: 'field', text: name, offset: at }, at + 1 + name.length, match);
  }
  if (first === '$') {
    const name = `$${match(WORD, at + 1) ?? ''}`;
    return ended(source, { kind: 'variable', text: name, offset: at }, at + name.length, match);
  }
  if (/[0-9+.-]/.test(first)) return readNumber(source, at, match);
  const word = match(WORD, at);
  if (word !== null) {
    const kind = KEYWORDS.has(word) ? 'keyword' : 'identifier';
    return ended(source, { kind, text: word, offset: at }, at + word.length, match);
  }
  if (text.startsWith(':=', at)) return { kind: 'sign', text: ':=', offset: at };
  if (/[!-~]/.test(first) && first !== ':') return { kind: 'sign', text: first, offset: at };
  throw errorAt(source, at, 'unexpected character in an action');
}

function readQuoted(source: TemplateSource, at: number, match: Match): Token | null {
  const kinds = { '"': ['string', QUOTED], '`': ['raw', RAW], "'": ['char', CHAR] } as const;
  const first = source.text.charAt(at);
  if (first !== '"' && first !== '`' && first !== "'") return null;
  const [kind, pattern] = kinds[first];
  const text = match(pattern, at);
  if (text === null)
    throw errorAt(source, at, `the literal that begins with ${first} is not closed`);
  return { kind, text, offset: at };
}

function readNumber(source: TemplateSource, at: number, match: Match): Token {
  const text = match(NUMBER, at) ?? '';
  const end = at + text.length;
  if (text === '' || match(WORD, end) !== null || /[+-]/.test(source.text.charAt(end)))
    throw errorAt(source, at, 'not a number (complex numbers are not supported)');
  return { kind: 'number', text, offset: at };
}

function ended(source: TemplateSource, token: Token, end: number, match: Match): Token {
  if (match(AFTER_WORD, end) === null)
    throw errorAt(source, end, `unexpected character after '${token.text}'`);
  return token;
}
