import type { CommandNode, Node, Operand, ParsedTemplate, PipeNode } from './nodes.ts';
import { readCharacter, readNumber, unquote } from './read-literals.ts';
import type { TemplateSource, Token } from './read-tokens.ts';
import { errorAt, type TemplateError } from './template-error.ts';
import { TokenCursor } from './token-cursor.ts';

/** Depth limit of blocks and parentheses. Written by hand, 20 is rare. */
const MAX_NESTING = 100;

/** Variables in scope: each use searches them. */
const MAX_VARIABLES = 200;

export type CheckFunction = (name: string) => string | null;

/**
 * Parses a text into templates: itself, by its name, and its definitions.
 * @param spend takes steps by the length of the text
 * @throws TemplateError
 */
export function parseTemplate(
  source: TemplateSource,
  checkFunction: CheckFunction,
  spend: (steps: number) => void,
): ReadonlyMap<string, ParsedTemplate> {
  const parser = new Parser(source, checkFunction, spend);
  parser.parseAll();
  return parser.templates;
}

type Ending = 'end' | 'else';

/** INVARIANT: `#variables` holds the variables in scope at `#tokens`. */
class Parser {
  readonly templates = new Map<string, ParsedTemplate>();
  /** Names of templates that are not blank. */
  readonly #said = new Set<string>();
  readonly #source: TemplateSource;
  readonly #tokens: TokenCursor;
  readonly #checkFunction: CheckFunction;
  #variables: string[] = ['$'];
  #rangeDepth = 0;
  #nesting = 0;

  constructor(
    source: TemplateSource,
    checkFunction: CheckFunction,
    spend: (steps: number) => void,
  ) {
    this.#source = source;
    this.#checkFunction = checkFunction;
    this.#tokens = new TokenCursor(source, spend);
  }

  parseAll(): void {
    const nodes: Node[] = [];
    while (this.#tokens.peek().kind !== 'end') {
      if (this.#tokens.isKeywordAction('define')) this.#parseDefine();
      else {
        const node = this.#parseNode();
        if (node === 'end' || node === 'else') throw this.#error(`unexpected {{${node}}}`);
        nodes.push(node);
      }
    }
    this.#add(this.#source.name, nodes);
  }

  #add(name: string, nodes: readonly Node[]): void {
    const isSaid = !isBlank(nodes);
    if (this.#said.has(name)) {
      if (!isSaid) return;
      throw this.#error(`the template '${name}' is defined twice`);
    }
    if (isSaid) this.#said.add(name);
    this.templates.set(name, { source: this.#source, nodes });
  }

  #parseDefine(): void {
    this.#tokens.next();
    this.#tokens.nextNonSpace();
    const name = this.#templateName();
    this.#expectRight('define');
    this.#parseBody(name);
  }

  /** Parses the body of a define or a block, which is a template of its own. */
  #parseBody(name: string): void {
    const [variables, rangeDepth] = [this.#variables, this.#rangeDepth];
    this.#variables = ['$'];
    this.#rangeDepth = 0;
    const [nodes, ending] = this.#parseList();
    if (ending !== 'end') throw this.#error('unexpected {{else}}');
    this.#add(name, nodes);
    this.#variables = variables;
    this.#rangeDepth = rangeDepth;
  }

  #parseList(): readonly [readonly Node[], Ending] {
    const nodes: Node[] = [];
    while (this.#tokens.peek().kind !== 'end') {
      const node = this.#parseNode();
      if (node === 'end' || node === 'else') return [nodes, node];
      nodes.push(node);
    }
    throw this.#error('unexpected end of the text: an {{end}} is missing');
  }

  #parseNode(): Node | Ending {
    const token = this.#tokens.next();
    if (token.kind === 'text') return { kind: 'text', text: token.text };
    const first = this.#tokens.peekNonSpace();
    if (first.kind !== 'keyword' || isLiteralWord(first.text))
      return {
        kind: 'action',
        offset: first.offset,
        pipe: this.#parsePipe('an action', false),
      };
    this.#tokens.nextNonSpace();
    return this.#parseControl(first);
  }

  #parseControl({ text, offset }: Token): Node | Ending {
    switch (text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#parseBranch(text, offset);
      case 'end':
        this.#expectRight('end');
        return 'end';
      case 'else':
        if (!this.#tokens.isKeyword('if') && !this.#tokens.isKeyword('with'))
          this.#expectRight('else');
        return 'else';
      case 'break':
      case 'continue':
        this.#expectRight(text);
        if (this.#rangeDepth === 0) throw this.#error(`{{${text}}} outside {{range}}`, offset);
        return { kind: text };
      case 'template': {
        const name = this.#templateName();
        const hasPipe = this.#tokens.peekNonSpace().kind !== 'right';
        const pipe = hasPipe ? this.#parsePipe('template', false) : null;
        if (!hasPipe) this.#expectRight('template');
        return { kind: 'template', offset, name, pipe };
      }
      case 'block': {
        const name = this.#templateName();
        const pipe = this.#parsePipe('block', false);
        this.#nested(() => this.#parseBody(name));
        return { kind: 'template', offset, name, pipe };
      }
      default:
        throw this.#error(`unexpected {{${text}}}`, offset);
    }
  }

  #parseBranch(kind: 'if' | 'with' | 'range', offset: number): Node {
    const declared = this.#variables.length;
    const node = this.#nested((): Node => {
      const pipe = this.#parsePipe(kind, kind === 'range');
      if (kind === 'range') this.#rangeDepth += 1;
      const [then, ending] = this.#parseList();
      if (kind === 'range') this.#rangeDepth -= 1;
      const otherwise = ending === 'end' ? null : this.#parseElse(kind);
      return { kind, offset, pipe, then, otherwise };
    });
    this.#variables.length = declared;
    return node;
  }

  /** `{{else if x}}` shares the {{end}} of its if. `with` works the same. */
  #parseElse(kind: 'if' | 'with' | 'range'): readonly Node[] {
    const { text, offset } = this.#tokens.peekNonSpace();
    if (this.#tokens.isKeyword('if') || this.#tokens.isKeyword('with')) {
      if (text !== kind) throw this.#error(`unexpected {{else ${text}}} in {{${kind}}}`);
      this.#tokens.nextNonSpace();
      return [this.#parseBranch(kind, offset)];
    }
    const [nodes, ending] = this.#parseList();
    if (ending !== 'end') throw this.#error('a second {{else}}');
    return nodes;
  }

  #parsePipe(context: string, isRange: boolean): PipeNode {
    return this.#parsePipeUntil(context, isRange, (token) => token.kind === 'right');
  }

  #parsePipeUntil(context: string, isRange: boolean, ends: (token: Token) => boolean): PipeNode {
    const { offset } = this.#tokens.peekNonSpace();
    const { variables, isAssignment } = this.#parseVariables(context, isRange);
    const commands: CommandNode[] = [];
    while (!ends(this.#tokens.peekNonSpace())) commands.push(this.#parseCommand(commands.length));
    this.#tokens.nextNonSpace();
    if (commands.length === 0) throw this.#error(`${context} has no value`, offset);
    return { offset, variables, isAssignment, commands };
  }

  #parseVariables(context: string, isRange: boolean): Pick<PipeNode, 'variables' | 'isAssignment'> {
    const names: string[] = [];
    const begin = this.#tokens.place;
    while (this.#tokens.peekNonSpace().kind === 'variable') {
      names.push(this.#tokens.nextNonSpace().text);
      const sign = this.#tokens.peekNonSpace();
      if (sign.kind === 'sign' && (sign.text === ':=' || sign.text === '=')) {
        this.#tokens.nextNonSpace();
        const isAssignment = sign.text === '=';
        const isKnown = (name: string): boolean => isAssignment && this.#variables.includes(name);
        // A pipeline knows its own variables, as in Go.
        this.#variables.push(...names.filter((name) => !isKnown(name)));
        if (this.#variables.length > MAX_VARIABLES)
          throw this.#error(`more than ${MAX_VARIABLES} variables`);
        return { variables: names, isAssignment };
      }
      if (sign.kind !== 'sign' || sign.text !== ',') {
        if (names.length > 1) throw this.#error('expected := after the variables of a range');
        break;
      }
      if (!isRange || names.length > 1) throw this.#error(`${context} has too many variables`);
      this.#tokens.nextNonSpace();
      if (this.#tokens.peekNonSpace().kind !== 'variable')
        throw this.#error('range can only declare variables');
    }
    this.#tokens.goBack(begin);
    return { variables: [], isAssignment: false };
  }

  #parseCommand(index: number): CommandNode {
    const { offset } = this.#tokens.peekNonSpace();
    const operands: Operand[] = [];
    for (;;) {
      this.#tokens.peekNonSpace();
      this.#tokens.skipSpace();
      const operand = this.#parseOperand();
      if (operand) operands.push(operand);
      const token = this.#tokens.peek();
      if (token.kind === 'space') continue;
      if (token.kind === 'sign' && token.text === '|') this.#tokens.next();
      else if (token.kind !== 'right' && !(token.kind === 'sign' && token.text === ')'))
        throw this.#error(`unexpected ${describe(token)}`, token.offset);
      break;
    }
    const [first, ...others] = operands;
    if (!first) throw this.#error('an empty command', offset);
    if (index > 0 && ['dot', 'nil', 'number', 'literal'].includes(first.kind))
      throw this.#error('the target of a pipe is not a function', first.offset);
    return { offset, operands: [first, ...others] };
  }

  #parseOperand(): Operand | null {
    const term = this.#parseTerm();
    if (!term) return null;
    const names: string[] = [];
    while (this.#tokens.peek().kind === 'field') names.push(this.#tokens.next().text);
    if (names.length === 0) return term;
    switch (term.kind) {
      case 'field':
      case 'variable':
        return { ...term, names: [...term.names, ...names] };
      case 'function':
      case 'pipe':
        return { kind: 'chain', offset: term.offset, of: term, names };
      case 'chain':
      case 'dot':
      case 'literal':
      case 'nil':
      case 'number':
        throw this.#error('a field of a literal is not possible', term.offset);
    }
  }

  #parseTerm(): Operand | null {
    const token = this.#tokens.peek();
    const { offset, text } = token;
    switch (token.kind) {
      case 'identifier': {
        const refusal = this.#checkFunction(text);
        if (refusal !== null) throw this.#error(refusal, offset);
        this.#tokens.next();
        return { kind: 'function', offset, name: text };
      }
      case 'field':
        this.#tokens.next();
        return { kind: 'field', offset, names: [text] };
      case 'variable':
        if (!this.#variables.includes(text)) throw this.#error(`undefined variable '${text}'`);
        this.#tokens.next();
        return { kind: 'variable', offset, name: text, names: [] };
      case 'keyword':
        return this.#parseWord(token);
      case 'number':
      case 'char':
        return this.#parseNumber(token);
      case 'string':
      case 'raw':
        return { kind: 'literal', offset, value: this.#readText() };
      case 'sign':
        return this.#parseSign(token);
      case 'end':
      case 'left':
      case 'right':
      case 'space':
      case 'text':
        return null;
    }
  }

  #parseWord({ text, offset }: Token): Operand | null {
    if (!isLiteralWord(text)) return null;
    this.#tokens.next();
    return text === 'nil'
      ? { kind: 'nil', offset }
      : { kind: 'literal', offset, value: text === 'true' };
  }

  #parseNumber({ kind, text, offset }: Token): Operand {
    const number = kind === 'char' ? readCharacter(text) : readNumber(text);
    if (!number) throw this.#error(`not a number: ${text.slice(0, 40)}`);
    this.#tokens.next();
    return { ...number, offset };
  }

  #parseSign({ text, offset }: Token): Operand | null {
    if (text === '.') {
      this.#tokens.next();
      return { kind: 'dot', offset };
    }
    if (text !== '(') return null;
    this.#tokens.next();
    const isClosing = (token: Token): boolean => token.kind === 'sign' && token.text === ')';
    const pipe = this.#nested(() => this.#parsePipeUntil('a parenthesis', false, isClosing));
    return { kind: 'pipe', offset, pipe };
  }

  #templateName(): string {
    const { kind } = this.#tokens.peekNonSpace();
    if (kind !== 'string' && kind !== 'raw') throw this.#error('expected the name of a template');
    this.#tokens.skipSpace();
    return this.#readText();
  }

  #readText(): string {
    const { text, offset } = this.#tokens.next();
    const value = unquote(text);
    if (value === null) throw this.#error('an unknown escape sequence', offset);
    return value;
  }

  #nested<Result>(parse: () => Result): Result {
    this.#nesting += 1;
    if (this.#nesting > MAX_NESTING) throw this.#error(`nested more than ${MAX_NESTING} deep`);
    const result = parse();
    this.#nesting -= 1;
    return result;
  }

  #expectRight(context: string): void {
    const token = this.#tokens.nextNonSpace();
    if (token.kind !== 'right')
      throw this.#error(`unexpected ${describe(token)} in {{${context}}}`, token.offset);
  }

  #error(reason: string, offset: number = this.#tokens.peekNonSpace().offset): TemplateError {
    return errorAt(this.#source, offset, reason);
  }
}

function describe({ kind, text }: Token): string {
  if (kind === 'end') return 'end of the text';
  return kind === 'right' ? '}}' : `'${text.slice(0, 40)}'`;
}

function isLiteralWord(word: string): boolean {
  return word === 'true' || word === 'false' || word === 'nil';
}

/** Whether a template is blank: only such a template may be redefined. */
function isBlank(nodes: readonly Node[]): boolean {
  return nodes.every((node) => node.kind === 'text' && node.text.trim() === '');
}
