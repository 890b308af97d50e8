import { MAX_TEXT_LENGTH } from '../format-each.ts';
import { compileRegex, findMatch, type Regex, type Slots } from '../regex/match-regex.ts';
import { CallError } from '../template-error.ts';
import { fixed, type GoFunction } from '../values.ts';

type Spend = (steps: number) => void;

/** A text and its pattern, in code points. */
class Search {
  readonly regex: Regex;
  readonly codes: readonly number[];
  readonly #spend: Spend;

  constructor(pattern: string, text: string, spend: Spend) {
    this.regex = compileRegex(pattern, spend);
    spend(text.length >> 2);
    this.codes = [...text].map((each) => each.codePointAt(0) ?? 0);
    this.#spend = spend;
  }

  find(from: number): Slots | null {
    return findMatch(this.regex, this.codes, from, this.#spend);
  }

  text(start: number, end: number): string {
    let text = '';
    for (const code of this.codes.slice(start, end)) text += String.fromCodePoint(code);
    return text;
  }

  /**
   * Finds all matches that do not overlap. An empty match does not follow another match directly.
   */
  findAll(count: number): readonly Slots[] {
    const found: Slots[] = [];
    let at = 0;
    let lastEnd = -1;
    while ((count < 0 || found.length < count) && at <= this.codes.length) {
      const match = this.find(at);
      if (!match) break;
      const [start = 0, end = 0] = match;
      const isEmptyHere = end === at;
      if (!(isEmptyHere && start === lastEnd)) found.push(match);
      at = isEmptyHere ? at + 1 : end;
      lastEnd = end;
    }
    return found;
  }

  replace(expand: (match: Slots) => string): string {
    const parts: string[] = [];
    let [length, at, lastEnd] = [0, 0, 0];
    while (at <= this.codes.length) {
      const match = this.find(at);
      if (!match) break;
      const [start = 0, end = 0] = match;
      parts.push(this.text(lastEnd, start));
      if (end > lastEnd || start === 0) parts.push(expand(match));
      length += parts.at(-1)?.length ?? 0;
      if (length > MAX_TEXT_LENGTH) throw new CallError('the result of a replacement is too long');
      lastEnd = end;
      at = Math.max(at + 1, end);
    }
    return parts.join('') + this.text(lastEnd, this.codes.length);
  }
}

const match = fixed(['string', 'string'], ({ spend }, pattern, text) => {
  return new Search(pattern, text, spend).find(0) !== null;
});
const find = fixed(['string', 'string'], ({ spend }, pattern, text) => {
  const search = new Search(pattern, text, spend);
  const [start = 0, end = 0] = search.find(0) ?? [];
  return search.text(start, end);
});
const findAll = fixed(['string', 'string', 'int'], ({ spend }, pattern, text, count) => {
  const search = new Search(pattern, text, spend);
  return search.findAll(Number(count)).map(([start, end]) => search.text(start ?? 0, end ?? 0));
});
const replaceAll = fixed(['string', 'string', 'string'], ({ spend }, pattern, text, by) => {
  const search = new Search(pattern, text, spend);
  return search.replace((found) => {
    spend(1 + (by.length >> 4));
    return expand(search, found, by, spend);
  });
});
const replaceLiteral = fixed(['string', 'string', 'string'], ({ spend }, pattern, text, by) => {
  return new Search(pattern, text, spend).replace(() => {
    spend(1 + (by.length >> 5));
    return by;
  });
});
const split = fixed(['string', 'string', 'int'], ({ spend }, pattern, text, count) => {
  if (count === 0n) return [];
  const search = new Search(pattern, text, spend);
  if (pattern !== '' && text === '') return [''];
  const parts: string[] = [];
  let [begin, end] = [0, 0];
  for (const [start = 0, stop = 0] of search.findAll(Number(count))) {
    if (count > 0n && BigInt(parts.length) === count - 1n) break;
    end = start;
    if (stop !== 0) parts.push(search.text(begin, end));
    begin = stop;
  }
  return end === search.codes.length ? parts : [...parts, search.text(begin, search.codes.length)];
});

/** Expands $1, ${1} and $name; a name is as long as possible, and $$ is a dollar. */
function expand(search: Search, found: Slots, by: string, spend: Spend): string {
  return by.replace(/\$(?:(\$)|(\w+)|\{(\w+)\})/g, (_all, dollar, bare, braced) => {
    if (dollar !== undefined) return '$';
    const name = String(bare ?? braced);
    const index = /^\d+$/.test(name) ? Number(name) : search.regex.names.indexOf(name);
    const [start = -1, end = -1] = index < 0 ? [] : found.slice(index * 2, index * 2 + 2);
    spend(1 + ((end - start) >> 3));
    return start < 0 ? '' : search.text(start, end);
  });
}

/** sprig's functions of regular expressions, in RE2's syntax. */
export const patternFunctions: Readonly<Record<string, GoFunction>> = {
  mustRegexFind: find,
  mustRegexFindAll: findAll,
  mustRegexMatch: match,
  mustRegexReplaceAll: replaceAll,
  mustRegexReplaceAllLiteral: replaceLiteral,
  mustRegexSplit: split,
  regexFind: find,
  regexFindAll: findAll,
  regexMatch: match,
  regexQuoteMeta: fixed(['string'], ({ spend }, text) => {
    spend(text.length >> 3);
    return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
  }),
  regexReplaceAll: replaceAll,
  regexReplaceAllLiteral: replaceLiteral,
  regexSplit: split,
};
