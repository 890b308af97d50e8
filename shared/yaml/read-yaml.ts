import { Composer, type Document, isAlias, isMap, isNode, isScalar } from 'yaml';
import { Lexer, LineCounter, Parser, visit, type YAMLMap } from 'yaml';
import type { DocumentOptions, ParseOptions, SchemaOptions, Tags } from 'yaml';

/** Names places and never content, which may hold passwords. */
export interface YamlProblem {
  readonly reason: string;
  readonly hint?: string;
}

export type ReadYaml = { readonly document: Document.Parsed } | { readonly problem: YamlProblem };

/** Lines and list items: one costs much more than its bytes. */
const MAX_ITEMS = 20_000;
/** Approximate number of lexemes per line: words, signs and the space between them. */
const LEXEMES_PER_ITEM = 12;
/** To resolve an alias, the library reads the whole document; ordinary documents have a dozen. */
const MAX_ALIASES = 200;
/**
 * Nesting of maps and lists; ordinary documents have a dozen levels. The library's parser needs
 * stack for each level, and time that grows with their square.
 */
const MAX_NESTING = 48;

/** Marks a value that is not a scalar: it equals no value of a document. */
const NO_WORD = Symbol('no word');

/**
 * Kinds of lists in which the library looks for duplicates in quadratic time; they are not in use.
 */
const COSTLY_TAGS = ['omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`);

/**
 * Reads one untrusted document, with time and stack bounded by its length. The library alone takes
 * a minute for 800 bytes of maps as keys of maps, fails with some thousand nested lists, and
 * compares each key of a map with all earlier ones. Such documents are refused, or read in another
 * way. Aliases stay unresolved but valid; `toJS` bounds them. With `uniqueKeys: false` keys may be
 * repeated.
 * @param maxItems lines and list items; ten thousand take a few tenths of a second
 */
export function readYaml(
  text: string,
  options: ParseOptions & DocumentOptions & SchemaOptions = {},
  maxItems = MAX_ITEMS,
): ReadYaml {
  if (countItems(text) > maxItems)
    return problem(`it has more than ${maxItems} lines and list items`, 'Split it.');
  const lines = new LineCounter();
  const maxLexemes = maxItems * LEXEMES_PER_ITEM;
  const parser = new BoundedParser(lines.addNewLine, maxLexemes);
  const composer = new Composer({
    ...options,
    uniqueKeys: false,
    customTags: withoutCostly,
    resolveKnownTags: false,
    lineCounter: lines,
    prettyErrors: false,
  });
  const [document, second] = composer.compose(parser.tokens(text), true, text.length);
  if (parser.isTooLong)
    return problem(`it has more than ${maxLexemes} words, signs and spaces`, 'Split it.');
  // With `forceDoc` the composer always returns a document.
  if (document === undefined || parser.isTooDeep)
    return problem(`its maps and lists are nested more than ${MAX_NESTING} deep`);
  const lineOf = (offset: number): number => lines.linePos(offset).line;
  const [fault] = [...document.errors, ...document.warnings];
  if (fault) return problem(`line ${lineOf(fault.pos[0])}: not valid YAML (${fault.code})`);
  if (second) return problem(`line ${lineOf(second.range[0])}: not valid YAML (MULTIPLE_DOCS)`);
  const oddity = findOddity(document, options.uniqueKeys !== false);
  return oddity === null ? { document } : problem(`line ${lineOf(oddity.at)}: ${oddity.reason}`);
}

function withoutCostly(tags: Tags): Tags {
  return tags.filter((tag) => typeof tag === 'string' || !COSTLY_TAGS.includes(tag.tag));
}

function problem(reason: string, hint?: string): ReadYaml {
  return { problem: { reason, ...(hint !== undefined && { hint }) } };
}

class BoundedParser {
  readonly #parser: Parser;
  readonly #maxLexemes: number;
  isTooDeep = false;
  isTooLong = false;

  constructor(onNewLine: (offset: number) => void, maxLexemes: number) {
    this.#parser = new Parser(onNewLine);
    this.#maxLexemes = maxLexemes;
    onNewLine(0);
  }

  *tokens(text: string): ReturnType<Parser['parse']> {
    let count = 0;
    for (const lexeme of new Lexer().lex(text)) {
      for (const token of this.#parser.next(lexeme)) {
        yield token;
        // The first error is enough: errors cost more than anything else.
        if (token.type === 'error') return;
      }
      count += 1;
      this.isTooLong = count > this.#maxLexemes;
      this.isTooDeep = this.#parser.stack.length > MAX_NESTING;
      if (this.isTooLong || this.isTooDeep) return;
    }
    yield* this.#parser.end();
  }
}

interface Oddity {
  readonly at: number;
  readonly reason: string;
}

/**
 * @returns the first key that is a map, a list or an alias, or has two values; or the first alias
 * without an anchor, or beyond the limit
 */
function findOddity(document: Document.Parsed, isUnique: boolean): Oddity | null {
  let found: Oddity | null = null;
  const anchors = new Set<string>();
  let aliases = 0;
  const stop = (node: unknown, reason: string): symbol => {
    // Nodes of the parser have a range.
    found = { at: (node as { range?: readonly number[] }).range?.[0] ?? 0, reason };
    return visit.BREAK;
  };
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) {
        aliases += 1;
        if (aliases > MAX_ALIASES) return stop(node, `more than ${MAX_ALIASES} aliases`);
        return anchors.has(node.source) ? undefined : stop(node, 'an alias without an anchor');
      }
      if (isNode(node) && 'anchor' in node && node.anchor) anchors.add(node.anchor);
      const twice = isUnique && isMap(node) ? findDuplicate(node) : undefined;
      return twice === undefined ? undefined : stop(twice, 'not valid YAML (DUPLICATE_KEY)');
    },
    Pair: (_, { key }) =>
      key === null || isScalar(key) ? undefined : stop(key, 'a key is not a scalar'),
  });
  return found;
}

/**
 * Finds a key with two values. A repeated line is accepted, since documents of other programs have
 * them. The library also takes two merge keys for different ones: each is a separate symbol.
 */
function findDuplicate({ items }: YAMLMap): unknown {
  const seen = new Map<unknown, unknown>();
  return items.find(({ key, value }) => {
    if (!isScalar(key)) return false;
    const isSame = isScalar(value) && seen.get(key.value) === value.value;
    const isTwice = seen.has(key.value) && !isSame;
    seen.set(key.value, isScalar(value) ? value.value : NO_WORD);
    return isTwice;
  })?.key;
}

function countItems(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x2c) count += 1;
  }
  return count;
}
