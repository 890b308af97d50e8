import { ownValue } from '#shared/json/own-value.ts';
import { CallError } from '../template-error.ts';

/** RE2's syntax, as far as templates use it. */
export type RegexNode =
  | {
      readonly kind: 'set';
      readonly has: (code: number) => boolean;
      readonly cost: number;
    }
  | { readonly kind: 'assert'; readonly holds: (before: number, after: number) => boolean }
  | { readonly kind: 'all'; readonly parts: readonly RegexNode[] }
  | { readonly kind: 'either'; readonly choices: readonly RegexNode[] }
  | { readonly kind: 'group'; readonly index: number; readonly of: RegexNode }
  | {
      readonly kind: 'repeat';
      readonly of: RegexNode;
      readonly least: number;
      readonly most: number;
      readonly isLazy: boolean;
    };

export interface ParsedRegex {
  readonly root: RegexNode;
  /** Names of groups by index; the whole match is 0. */
  readonly names: readonly string[];
}

const MAX_PATTERN = 1024;
/** RE2's own limit of a repetition. */
const MAX_REPEAT = 1000;
const MAX_NESTING = 50;
/** Each thread of a match carries all groups; Go has no such limit. */
const MAX_GROUPS = 32;
/** Stands before the first and after the last character. */
export const NO_CHARACTER = -1;

type Has = (code: number) => boolean;
interface Flags {
  readonly i: boolean;
  readonly m: boolean;
  readonly s: boolean;
}

const isDigit: Has = (code) => code >= 48 && code <= 57;
const isLower: Has = (code) => code >= 97 && code <= 122;
const isUpper: Has = (code) => code >= 65 && code <= 90;
const isSpace: Has = (code) => code === 32 || (code >= 9 && code <= 13 && code !== 11);
const isWord: Has = (code) => isDigit(code) || isLower(code) || isUpper(code) || code === 95;
const not =
  (has: Has): Has =>
  (code) =>
    !has(code);
const CLASSES: Readonly<Record<string, Has>> = {
  d: isDigit,
  D: not(isDigit),
  w: isWord,
  W: not(isWord),
  s: isSpace,
  S: not(isSpace),
};
const POSIX: Readonly<Record<string, Has>> = {
  alpha: (code) => isLower(code) || isUpper(code),
  alnum: (code) => isLower(code) || isUpper(code) || isDigit(code),
  digit: isDigit,
  lower: isLower,
  upper: isUpper,
  space: (code) => isSpace(code) || code === 11,
  punct: (code) => code > 32 && code < 127 && !(isWord(code) && code !== 95),
  word: isWord,
  xdigit: (code) => isDigit(code) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102),
  blank: (code) => code === 32 || code === 9,
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, a: 7 };

/** @throws CallError for an invalid pattern, or unsupported syntax */
export function parseRegex(pattern: string): ParsedRegex {
  if (pattern.length > MAX_PATTERN)
    throw new CallError(`a pattern is longer than ${MAX_PATTERN} characters`);
  return new RegexParser(pattern).parse();
}

/** INVARIANT: `#at` is at most the number of characters. */
class RegexParser {
  readonly #pattern: string;
  readonly #characters: readonly string[];
  readonly #names: string[] = [''];
  #at = 0;
  #nesting = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#characters = [...pattern];
  }

  parse(): ParsedRegex {
    const root = this.#either({ i: false, m: false, s: false });
    if (this.#at < this.#characters.length) throw this.#error();
    return { root, names: this.#names };
  }

  #either(outer: Flags): RegexNode {
    this.#nesting += 1;
    if (this.#nesting > MAX_NESTING) throw this.#error();
    let flags = outer;
    const choices: RegexNode[] = [];
    let parts: RegexNode[] = [];
    for (;;) {
      if (this.#take('|')) {
        choices.push({ kind: 'all', parts });
        parts = [];
        continue;
      }
      const set = this.#takeMatch('(', /^\(\?([ims]*)(?:-([ims]+))?\)/);
      if (set) {
        flags = withFlags(flags, set);
        continue;
      }
      const atom = this.#atom(flags);
      if (!atom) break;
      parts.push(this.#repeated(atom));
    }
    this.#nesting -= 1;
    choices.push({ kind: 'all', parts });
    return { kind: 'either', choices };
  }

  #repeated(atom: RegexNode): RegexNode {
    let node = atom;
    for (let count = 0; ; count += 1) {
      const bounds = this.#bounds();
      if (!bounds) return node;
      // Go refuses a repetition of a repetition, such as a**.
      if (count > 0 || atom.kind === 'assert') throw this.#error();
      node = { kind: 'repeat', of: node, ...bounds, isLazy: this.#take('?') };
    }
  }

  #bounds(): { readonly least: number; readonly most: number } | null {
    if (this.#take('*')) return { least: 0, most: Infinity };
    if (this.#take('+')) return { least: 1, most: Infinity };
    if (this.#take('?')) return { least: 0, most: 1 };
    const match = this.#takeMatch('{', /^\{(\d{1,5})(?:(,)(\d{1,5})?)?\}/);
    if (!match) return null;
    const least = Number(match[1]);
    const most = match[3] !== undefined ? Number(match[3]) : match[2] ? Infinity : least;
    if (least > MAX_REPEAT || (most !== Infinity && (most > MAX_REPEAT || most < least)))
      throw this.#error();
    return { least, most };
  }

  #atom(flags: Flags): RegexNode | null {
    const character = this.#characters[this.#at];
    if (character === undefined || character === ')') return null;
    this.#at += 1;
    switch (character) {
      case '(':
        return this.#group(flags);
      case '[':
        return this.#class(flags);
      case '.':
        return { kind: 'set', has: (code) => flags.s || code !== 10, cost: 0 };
      case '^':
        return edge((before) => before === NO_CHARACTER || (flags.m && before === 10));
      case '$':
        return edge((_before, after) => after === NO_CHARACTER || (flags.m && after === 10));
      case '*':
      case '+':
      case '?':
        throw this.#error();
      case '\\':
        return this.#escape(flags);
      default:
        return set(is(character), flags);
    }
  }

  #group(flags: Flags): RegexNode {
    const named = this.#takeMatch('?', /^\?P?<([A-Za-z_]\w*)>/);
    const inner = named ? null : this.#takeMatch('?', /^\?([ims]*)(?:-([ims]+))?:/);
    const index = inner ? null : this.#names.push(named?.[1] ?? '') - 1;
    if (this.#names.length > MAX_GROUPS)
      throw new CallError(`a pattern has more than ${MAX_GROUPS} groups`);
    const of = this.#either(inner ? withFlags(flags, inner) : flags);
    if (!this.#take(')')) throw this.#error();
    return index === null ? of : { kind: 'group', index, of };
  }

  #escape(flags: Flags): RegexNode {
    const next = this.#characters[this.#at];
    if (next === 'b' || next === 'B') {
      this.#at += 1;
      const isEdge = (before: number, after: number): boolean => isWord(before) !== isWord(after);
      return edge(next === 'b' ? isEdge : (before, after) => !isEdge(before, after));
    }
    if (this.#take('A')) return edge((before) => before === NO_CHARACTER);
    if (this.#take('z')) return edge((_before, after) => after === NO_CHARACTER);
    return set(this.#escapedSet(), flags);
  }

  #escapedSet(): Has {
    const known = ownValue(CLASSES, this.#characters[this.#at] ?? '');
    if (known) {
      this.#at += 1;
      return known;
    }
    const code = this.#escapedCode();
    return (each) => each === code;
  }

  #escapedCode(): number {
    const hex = this.#takeMatch('x', /^x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})/);
    if (hex) return Number.parseInt(hex[1] ?? hex[2] ?? '', 16);
    const character = this.#characters[this.#at] ?? '';
    this.#at += 1;
    const control = ownValue(CONTROLS, character);
    if (control !== undefined) return control;
    if (!/^[!-/:-@[-`{-~]$/.test(character)) throw this.#error();
    return character.codePointAt(0) ?? 0;
  }

  #class(flags: Flags): RegexNode {
    const isNegated = this.#take('^');
    const parts: Has[] = [];
    for (let isFirst = true; isFirst || !this.#take(']'); isFirst = false) {
      const posix = this.#takeMatch('[', /^\[:(\^?)([a-z]+):\]/);
      const named = posix ? ownValue(POSIX, posix[2] ?? '') : undefined;
      if (posix && !named) throw this.#error();
      if (named) parts.push(posix?.[1] ? not(named) : named);
      else parts.push(this.#range());
    }
    const has: Has = (code) => parts.some((part) => part(code));
    return set(isNegated ? not(has) : has, flags, parts.length >> 4);
  }

  #range(): Has {
    if (
      this.#characters[this.#at] === '\\' &&
      ownValue(CLASSES, this.#characters[this.#at + 1] ?? '')
    ) {
      this.#at += 1;
      return this.#escapedSet();
    }
    const low = this.#classCode();
    const [dash, end] = this.#characters.slice(this.#at, this.#at + 2);
    if (dash !== '-' || end === ']' || end === undefined) return (code) => code === low;
    this.#at += 1;
    const high = this.#classCode();
    if (high < low) throw this.#error();
    return (code) => code >= low && code <= high;
  }

  #classCode(): number {
    const character = this.#characters[this.#at];
    if (character === undefined) throw this.#error();
    this.#at += 1;
    return character === '\\' ? this.#escapedCode() : (character.codePointAt(0) ?? 0);
  }

  #take(character: string): boolean {
    const isThere = this.#characters[this.#at] === character;
    if (isThere) this.#at += 1;
    return isThere;
  }

  #takeMatch(first: string, pattern: RegExp): RegExpExecArray | null {
    if (this.#characters[this.#at] !== first) return null;
    const match = pattern.exec(this.#characters.slice(this.#at, this.#at + 80).join(''));
    if (match) this.#at += [...match[0]].length;
    return match;
  }

  #error(): CallError {
    return new CallError(`the pattern ${JSON.stringify(this.#pattern)} is not supported`);
  }
}

function withFlags(flags: Flags, [, on = '', off = '']: RegExpExecArray): Flags {
  const has = (name: 'i' | 'm' | 's'): boolean =>
    (flags[name] || on.includes(name)) && !off.includes(name);
  return { i: has('i'), m: has('m'), s: has('s') };
}

function is(character: string): Has {
  const code = character.codePointAt(0);
  return (each) => each === code;
}

function set(has: Has, { i }: Flags, cost = 0): RegexNode {
  if (!i) return { kind: 'set', has, cost };
  const other = (code: number): number => {
    const text = String.fromCodePoint(code);
    const changed = text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase();
    return changed.codePointAt(0) ?? code;
  };
  return { kind: 'set', has: (code) => has(code) || has(other(code)), cost: 1 + 2 * cost };
}

function edge(holds: (before: number, after: number) => boolean): RegexNode {
  return { kind: 'assert', holds };
}
