import { Composer, type Document, isScalar, Lexer, LineCounter, Parser, visit } from 'yaml';
import type { DocumentOptions, ParseOptions, SchemaOptions } from 'yaml';

/** Told by place and never by content, which may hold passwords. */
export interface YamlProblem {
  readonly reason: string;
  readonly hint?: string;
}

export type ReadYaml = { readonly document: Document.Parsed } | { readonly problem: YamlProblem };

/** Lines and list items: one costs much more than its bytes. */
const MAX_ITEMS = 20_000;
/**
 * Maps and lists in each other; documents for people have a dozen. The library's parser takes a
 * part of the stack for each, and time that grows with their square.
 */
const MAX_NESTING = 48;

/**
 * Reads one foreign document, in time and stack that its length bounds: the library alone takes a
 * minute for 800 bytes of maps that are keys of maps, and fails with some thousand lists in each
 * other. Such documents are refused. Aliases are not resolved yet: `toJS` bounds them.
 */
export function readYaml(
  text: string,
  options: ParseOptions & DocumentOptions & SchemaOptions = {},
): ReadYaml {
  if (countItems(text) > MAX_ITEMS)
    return problem(`it has more than ${MAX_ITEMS} lines and list items`, 'split it');
  const lines = new LineCounter();
  const parser = new BoundedParser(lines.addNewLine);
  const composer = new Composer({ ...options, lineCounter: lines, prettyErrors: false });
  const [document, second] = composer.compose(parser.tokens(text), true, text.length);
  // A composer that is forced to give a document gives one.
  if (document === undefined || parser.isTooDeep)
    return problem(`its maps and lists are more than ${MAX_NESTING} deep in each other`);
  const lineOf = (offset: number): number => lines.linePos(offset).line;
  const [fault] = [...document.errors, ...document.warnings];
  if (fault) return problem(`line ${lineOf(fault.pos[0])}: not valid YAML (${fault.code})`);
  if (second) return problem(`line ${lineOf(second.range[0])}: not valid YAML (MULTIPLE_DOCS)`);
  const key = findOddKey(document);
  return key === null ? { document } : problem(`line ${lineOf(key)}: a key is no word`);
}

function problem(reason: string, hint?: string): ReadYaml {
  return { problem: { reason, ...(hint !== undefined && { hint }) } };
}

class BoundedParser {
  readonly #parser: Parser;
  isTooDeep = false;

  constructor(onNewLine: (offset: number) => void) {
    this.#parser = new Parser(onNewLine);
    onNewLine(0);
  }

  *tokens(text: string): ReturnType<Parser['parse']> {
    for (const lexeme of new Lexer().lex(text)) {
      yield* this.#parser.next(lexeme);
      this.isTooDeep = this.#parser.stack.length > MAX_NESTING;
      if (this.isTooDeep) return;
    }
    yield* this.#parser.end();
  }
}

/** @returns where the first key is that is a map, a list or an alias */
function findOddKey(document: Document.Parsed): number | null {
  let found: number | null = null;
  visit(document, {
    Pair: (_, { key }) => {
      if (key === null || isScalar(key)) return undefined;
      // What the parser made has a range.
      found = (key as { range?: readonly number[] }).range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}

function countItems(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x2c) count += 1;
  }
  return count;
}
