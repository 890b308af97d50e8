import { AppError } from '#shared/errors/app-error.ts';
import type { FieldValue } from './field.ts';

/**
 * Returns a field of the present item.
 * @throws AppError USAGE for an unknown field
 */
type Lookup = (field: string) => FieldValue;
export type Predicate = (lookup: Lookup) => boolean;

type Token =
  | { readonly kind: 'symbol'; readonly text: string }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'regex'; readonly regex: RegExp };

const MAX_FILTER_CHARACTERS = 4096;
const SYMBOLS = /^(==|!=|<=|>=|=~|!~|=\*|!\*|<|>|\(|\))/;

/**
 * Parses the common part of Ganeti's filter language: `status == "running" and (be/memory > 512 or
 * "db" in tags)`, `name =* "web*"`, `name =~ m/^web/`, `not communication`.
 * @throws AppError USAGE with the place of the error
 */
export function parseFilter(text: string): Predicate {
  if (text.length > MAX_FILTER_CHARACTERS) throw refuse(text.slice(0, 20), 'too long');
  const tokens = tokenize(text);
  let at = 0;
  const peekWord = (word: string): boolean => {
    const token = tokens[at];
    return token?.kind === 'word' && token.text === word;
  };
  const takeSymbol = (symbols: readonly string[]): string | null => {
    const token = tokens[at];
    if (token?.kind !== 'symbol' || !symbols.includes(token.text)) return null;
    at += 1;
    return token.text;
  };

  function parseOr(): Predicate {
    const parts = [parseAnd()];
    while (peekWord('or')) {
      at += 1;
      parts.push(parseAnd());
    }
    return (lookup) => parts.some((part) => part(lookup));
  }
  function parseAnd(): Predicate {
    const parts = [parseNot()];
    while (peekWord('and')) {
      at += 1;
      parts.push(parseNot());
    }
    return (lookup) => parts.every((part) => part(lookup));
  }
  function parseNot(): Predicate {
    if (!peekWord('not')) return parseTerm();
    at += 1;
    const inner = parseNot();
    return (lookup) => !inner(lookup);
  }
  function parseTerm(): Predicate {
    if (takeSymbol(['(']) !== null) {
      const inner = parseOr();
      if (takeSymbol([')']) === null) throw refuse(text, "a ')' is missing");
      return inner;
    }
    const token = tokens[at];
    at += 1;
    if (token?.kind === 'text' || token?.kind === 'number') return parseMembership(token);
    if (token?.kind !== 'word') throw refuse(text, 'expected a field');
    return parseComparison(token.text);
  }
  function parseMembership(token: Token): Predicate {
    if (!peekWord('in')) throw refuse(text, "expected 'in' after a value");
    at += 1;
    const field = tokens[at];
    at += 1;
    if (field?.kind !== 'word') throw refuse(text, "expected a field after 'in'");
    const value = token.kind === 'number' ? token.value : token.kind === 'text' ? token.text : '';
    return (lookup) => {
      const found = lookup(field.text);
      return Array.isArray(found) && found.some((each) => String(each) === String(value));
    };
  }
  function parseComparison(field: string): Predicate {
    const operator = takeSymbol(['==', '!=', '<=', '>=', '<', '>', '=~', '!~', '=*', '!*']);
    if (operator === null) return (lookup) => isTrue(lookup(field));
    const operand = tokens[at];
    at += 1;
    if (operand === undefined || operand.kind === 'symbol') {
      throw refuse(text, `expected a value after ${operator}`);
    }
    return comparison(field, operator, operand, text);
  }

  const predicate = parseOr();
  if (at < tokens.length) throw refuse(text, 'unexpected text at the end');
  return predicate;
}

function comparison(field: string, operator: string, operand: Token, text: string): Predicate {
  const value = valueOf(operand);
  switch (operator) {
    case '=~':
    case '!~': {
      const regex = operand.kind === 'regex' ? operand.regex : compile(String(value), text);
      return (lookup) => regex.test(asText(lookup(field))) === (operator === '=~');
    }
    case '=*':
    case '!*': {
      const regex = globToRegex(String(value));
      return (lookup) => regex.test(asText(lookup(field))) === (operator === '=*');
    }
    case '==':
      return (lookup) => isEqual(lookup(field), value);
    case '!=':
      return (lookup) => !isEqual(lookup(field), value);
    default: {
      const wanted = typeof value === 'number' ? value : Number(value);
      if (Number.isNaN(wanted)) throw refuse(text, `${operator} compares numbers`);
      return (lookup) => compareNumbers(lookup(field), operator, wanted);
    }
  }
}

function compareNumbers(found: FieldValue, operator: string, wanted: number): boolean {
  if (typeof found !== 'number') return false;
  if (operator === '<') return found < wanted;
  if (operator === '>') return found > wanted;
  return operator === '<=' ? found <= wanted : found >= wanted;
}

function isEqual(found: FieldValue, wanted: string | number): boolean {
  if (typeof found === 'boolean') return found === /^(true|yes|y|1)$/i.test(String(wanted));
  return asText(found) === String(wanted);
}

function isTrue(value: FieldValue): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function asText(value: FieldValue): string {
  return value === null ? '' : Array.isArray(value) ? value.join(',') : String(value);
}

function valueOf(token: Token): string | number {
  if (token.kind === 'number') return token.value;
  return token.kind === 'regex' ? token.regex.source : token.text;
}

/** Converts `web*` or `db?`. The whole text must match. */
export function globToRegex(glob: string): RegExp {
  const escaped = glob.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}

function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let rest = text.trimStart();
  while (rest !== '') {
    const [token, length] = readToken(rest, text);
    tokens.push(token);
    rest = rest.slice(length).trimStart();
  }
  return tokens;
}

function readToken(rest: string, text: string): readonly [Token, number] {
  const symbol = SYMBOLS.exec(rest);
  if (symbol) return [{ kind: 'symbol', text: symbol[0] }, symbol[0].length];
  const quoted = /^"((?:[^"\\]|\\.)*)"|^'((?:[^'\\]|\\.)*)'/s.exec(rest);
  if (quoted) {
    const inner = (quoted[1] ?? quoted[2] ?? '').replaceAll(/\\(.)/gs, '$1');
    return [{ kind: 'text', text: inner }, quoted[0].length];
  }
  const regex = /^m\/((?:[^/\\]|\\.)*)\/(i?)/s.exec(rest);
  if (regex) {
    return [{ kind: 'regex', regex: compile(regex[1] ?? '', text, regex[2]) }, regex[0].length];
  }
  const number = /^-?\d+(?:\.\d+)?(?![\w./-])/.exec(rest);
  if (number) return [{ kind: 'number', value: Number(number[0]) }, number[0].length];
  const word = /^[A-Za-z0-9_][\w./:-]*/.exec(rest);
  if (word) return [{ kind: 'word', text: word[0] }, word[0].length];
  throw refuse(text, `unexpected '${rest.slice(0, 10)}'`);
}

function compile(source: string, text: string, flags = ''): RegExp {
  try {
    return new RegExp(source, flags);
  } catch {
    throw refuse(text, `'${source}' is not a regular expression`);
  }
}

function refuse(text: string, reason: string): AppError {
  return new AppError('USAGE', `filter '${text}': ${reason}`, {
    hint: 'Write as in --filter \'status == "running" and be/memory >= 512\'',
  });
}
