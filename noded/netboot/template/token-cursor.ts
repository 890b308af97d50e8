import { readTokens, type TemplateSource, type Token } from './read-tokens.ts';

/**
 * A position in the tokens of a text. INVARIANT: `#at` never passes the last token, which is of
 * kind `end`.
 */
export class TokenCursor {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(source: TemplateSource, spend: (steps: number) => void) {
    this.#tokens = readTokens(source, spend);
  }

  get place(): number {
    return this.#at;
  }

  goBack(place: number): void {
    this.#at = place;
  }

  isKeywordAction(keyword: string): boolean {
    if (this.peek().kind !== 'left') return false;
    const begin = this.#at;
    this.next();
    const isIt = this.isKeyword(keyword);
    this.#at = begin;
    return isIt;
  }

  isKeyword(keyword: string): boolean {
    const token = this.peekNonSpace();
    return token.kind === 'keyword' && token.text === keyword;
  }

  peek(): Token {
    const token = this.#tokens[this.#at];
    if (!token) throw new Error('a parser that passed the end of its text');
    return token;
  }

  next(): Token {
    const token = this.peek();
    if (token.kind !== 'end') this.#at += 1;
    return token;
  }

  skipSpace(): void {
    while (this.peek().kind === 'space') this.#at += 1;
  }

  peekNonSpace(): Token {
    const begin = this.#at;
    this.skipSpace();
    const token = this.peek();
    this.#at = begin;
    return token;
  }

  nextNonSpace(): Token {
    this.skipSpace();
    return this.next();
  }
}
