import { formatEach, formatPlain, MAX_TEXT_LENGTH } from './format-each.ts';
import { fits, itemsOf, sizeOf } from './look-at-values.ts';
import type { CommandNode, Node, Operand, ParsedTemplate, PipeNode } from './nodes.ts';
import { Output } from './output.ts';
import { withDefinitions, type Surroundings } from './surroundings.ts';
import { asCallError, CallError, errorAt, TemplateError } from './template-error.ts';
import {
  GoFunction,
  isDict,
  isList,
  isTrue,
  Struct,
  typeName,
  type ArgumentType,
  type Call,
  type Value,
} from './values.ts';

/** Depth limit of blocks, parentheses and templates together. */
const MAX_DEPTH = 400;

/**
 * Renders a template with a value.
 * @throws TemplateError
 */
export function evaluateTemplate(
  template: ParsedTemplate,
  dot: Value,
  surroundings: Surroundings,
): string {
  const output = new Output(surroundings.maxBytes);
  new Evaluation(template, dot, surroundings, output, 0).run();
  return output.toString();
}

/**
 * Outcome of a node: `next` continues with the following node, the others act on the loop around
 * it.
 */
type Flow = 'next' | 'break' | 'continue';

/** No value from the preceding command, unlike null. */
const NOTHING = Symbol('nothing');
type Final = Value | typeof NOTHING;

/**
 * Evaluates one template. A called template has its own evaluation with one more depth. INVARIANT:
 * `#variables` holds the declared variables, the latest last.
 */
class Evaluation {
  readonly #template: ParsedTemplate;
  readonly #dot: Value;
  readonly #surroundings: Surroundings;
  readonly #output: Output;
  readonly #variables: { readonly name: string; value: Value }[];
  #depth: number;

  constructor(
    template: ParsedTemplate,
    dot: Value,
    surroundings: Surroundings,
    output: Output,
    depth: number,
  ) {
    this.#template = template;
    this.#dot = dot;
    this.#surroundings = surroundings;
    this.#output = output;
    this.#depth = depth;
    this.#variables = [{ name: '$', value: dot }];
  }

  run(): void {
    this.#at(0, () => this.#walkAll(this.#dot, this.#template.nodes));
  }

  #walkAll(dot: Value, nodes: readonly Node[]): Flow {
    for (const node of nodes) {
      const flow = this.#walk(dot, node);
      if (flow !== 'next') return flow;
    }
    return 'next';
  }

  #walk(dot: Value, node: Node): Flow {
    this.#step('offset' in node ? node.offset : 0);
    switch (node.kind) {
      case 'text':
        this.#at(0, () => {
          this.#surroundings.spend(node.text.length >> 8);
          this.#output.write(node.text);
        });
        return 'next';
      case 'break':
      case 'continue':
        return node.kind;
      case 'action': {
        const value = this.#pipe(dot, node.pipe);
        if (node.pipe.variables.length === 0) this.#at(node.offset, () => this.#print(value));
        return 'next';
      }
      case 'template': {
        const value = node.pipe ? this.#pipe(dot, node.pipe) : null;
        this.#at(node.offset, () => this.#call(node.name, value, this.#output));
        return 'next';
      }
      case 'if':
      case 'with':
      case 'range':
        return this.#scoped(node.offset, () =>
          node.kind === 'range' ? this.#range(dot, node) : this.#branch(dot, node),
        );
    }
  }

  #branch(dot: Value, node: Node & { kind: 'if' | 'with' | 'range' }): Flow {
    const value = this.#pipe(dot, node.pipe);
    if (isTrue(value)) return this.#walkAll(node.kind === 'with' ? value : dot, node.then);
    return node.otherwise ? this.#walkAll(dot, node.otherwise) : 'next';
  }

  #range(dot: Value, node: Node & { kind: 'if' | 'with' | 'range' }): Flow {
    const items = this.#at(node.offset, () => {
      const value = this.#pipe(dot, node.pipe);
      this.#surroundings.spend(sizeOf(value));
      return itemsOf(value, this.#surroundings.spend);
    });
    const mark = this.#variables.length;
    let isEmpty = true;
    for (const [key, item] of items) {
      isEmpty = false;
      this.#at(node.offset, () => this.#surroundings.spend(1));
      this.#setRangeVariables(node.pipe, key, item, mark);
      const flow = this.#walkAll(item, node.then);
      this.#variables.length = mark;
      if (flow === 'break') return 'next';
    }
    return isEmpty && node.otherwise ? this.#walkAll(dot, node.otherwise) : 'next';
  }

  #setRangeVariables(pipe: PipeNode, key: Value, item: Value, mark: number): void {
    const values = pipe.variables.length === 1 ? [item] : [key, item];
    pipe.variables.forEach((name, index) => {
      const declared = this.#variables[mark - pipe.variables.length + index];
      const variable = pipe.isAssignment ? this.#variable(name) : declared;
      if (variable) variable.value = values[index] ?? null;
    });
  }

  /** Variables declared inside end with the block. */
  #scoped<Result>(offset: number, run: () => Result): Result {
    const mark = this.#variables.length;
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH)
      throw this.#error(offset, `blocks and templates are nested more than ${MAX_DEPTH} deep`);
    try {
      return run();
    } finally {
      this.#depth -= 1;
      this.#variables.length = mark;
    }
  }

  #print(value: Value): void {
    const { spend } = this.#surroundings;
    this.#output.write(value === null ? '<no value>' : formatEach(value, spend, formatPlain));
  }

  #call(name: string, dot: Value, output: Output): void {
    const template = this.#surroundings.lookUp(name);
    if (!template) throw new CallError(`the template "${name}" is not defined`);
    this.#evaluate(template, dot, output);
  }

  #evaluate(
    template: ParsedTemplate,
    dot: Value,
    output: Output,
    surroundings = this.#surroundings,
  ): void {
    if (this.#depth >= MAX_DEPTH)
      throw new CallError(`blocks and templates are nested more than ${MAX_DEPTH} deep`);
    new Evaluation(template, dot, surroundings, output, this.#depth + 1).run();
  }

  #pipe(dot: Value, pipe: PipeNode): Value {
    let value: Final = NOTHING;
    for (const command of pipe.commands) value = this.#command(dot, command, value);
    const result: Value = value === NOTHING ? null : value;
    for (const name of pipe.variables) {
      const variable = this.#variable(name);
      if (!pipe.isAssignment) this.#variables.push({ name, value: result });
      else if (variable) variable.value = result;
      else throw this.#error(pipe.offset, `undefined variable '${name}'`);
    }
    return result;
  }

  #command(dot: Value, { offset, operands }: CommandNode, final: Final): Value {
    this.#step(offset);
    const [first, ...others] = operands;
    return this.#operand(dot, first, others, final);
  }

  /** Evaluates an operand with arguments, which most kinds refuse. */
  #operand(dot: Value, operand: Operand, given: readonly Operand[], final: Final): Value {
    switch (operand.kind) {
      case 'field':
        return this.#fields(dot, dot, operand, given, final);
      case 'variable': {
        const value = this.#variable(operand.name)?.value ?? null;
        if (operand.names.length > 0) return this.#fields(dot, value, operand, given, final);
        this.#takesNothing(operand, given, final);
        return value;
      }
      case 'chain':
        return this.#fields(dot, this.#value(dot, operand.of), operand, given, final);
      case 'function':
        return this.#function(dot, operand, given, final);
      case 'nil':
        throw this.#error(operand.offset, 'nil is not a command');
      case 'dot':
      case 'literal':
      case 'number':
      case 'pipe':
        this.#takesNothing(operand, given, final);
        return this.#value(dot, operand);
    }
  }

  #takesNothing({ offset }: Operand, given: readonly Operand[], final: Final): void {
    if (given.length > 0 || final !== NOTHING)
      throw this.#error(offset, 'arguments for a value that is not a function');
  }

  /** Evaluates an operand that is an argument and has no arguments of its own. */
  #value(dot: Value, operand: Operand): Value {
    this.#step(operand.offset);
    switch (operand.kind) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'number':
      case 'literal':
        return operand.value;
      case 'pipe':
        return this.#parenthesis(dot, operand.offset, operand.pipe);
      case 'chain':
      case 'field':
      case 'function':
      case 'variable':
        return this.#operand(dot, operand, [], NOTHING);
    }
  }

  #parenthesis(dot: Value, offset: number, pipe: PipeNode): Value {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#error(offset, 'parentheses are nested too deeply');
    const value = this.#pipe(dot, pipe);
    this.#depth -= 1;
    return value;
  }

  #fields(
    dot: Value,
    receiver: Value,
    { offset, names }: Operand & { readonly names: readonly string[] },
    given: readonly Operand[],
    final: Final,
  ): Value {
    return names.reduce((value, name, index) => {
      const isLast = index === names.length - 1;
      return this.#field(dot, value, name, offset, isLast ? given : [], isLast ? final : NOTHING);
    }, receiver);
  }

  #field(
    dot: Value,
    receiver: Value,
    name: string,
    offset: number,
    given: readonly Operand[],
    final: Final,
  ): Value {
    this.#step(offset);
    const members = isDict(receiver)
      ? receiver
      : receiver instanceof Struct
        ? receiver.members
        : undefined;
    if (!members) throw this.#error(offset, `a ${typeName(receiver)} has no field '${name}'`);
    const member: Value | GoFunction | undefined = members.get(name);
    if (member === undefined)
      throw this.#error(
        offset,
        isDict(receiver) ? `the map has no entry '${name}'` : `there is no .${name} here`,
      );
    if (member instanceof GoFunction)
      return this.#apply(dot, member, `.${name}`, offset, given, final);
    if (given.length > 0 || final !== NOTHING)
      throw this.#error(offset, `'${name}' is not a method and takes no arguments`);
    return member;
  }

  #function(
    dot: Value,
    { name, offset }: Operand & { readonly kind: 'function' },
    given: readonly Operand[],
    final: Final,
  ): Value {
    if (name === 'and' || name === 'or')
      return this.#logic(dot, name === 'or', offset, given, final);
    const found = this.#surroundings.functions.get(name);
    if (!found) throw this.#error(offset, `function '${name}' does not exist`);
    return this.#apply(dot, found, name, offset, given, final);
  }

  /** Returns the first deciding operand, or the last one. Later operands are not evaluated. */
  #logic(
    dot: Value,
    deciding: boolean,
    offset: number,
    given: readonly Operand[],
    final: Final,
  ): Value {
    if (given.length === 0 && final === NOTHING)
      throw this.#error(offset, 'too few arguments for and, or');
    let value: Value = null;
    for (const operand of given) {
      value = this.#value(dot, operand);
      if (isTrue(value) === deciding) return value;
    }
    return final === NOTHING ? value : final;
  }

  #apply(
    dot: Value,
    called: GoFunction,
    name: string,
    offset: number,
    given: readonly Operand[],
    final: Final,
  ): Value {
    const count = given.length + (final === NOTHING ? 0 : 1);
    const least = called.fixed.length;
    if (count < least || (called.rest === null && count > least))
      throw this.#error(offset, `${name} takes ${least} arguments, not ${count}`);
    const typeOf = (index: number): ArgumentType => called.fixed[index] ?? called.rest ?? 'any';
    const values = given.map((operand, index) => this.#argument(dot, operand, typeOf(index), name));
    if (final !== NOTHING) values.push(this.#checked(final, typeOf(given.length), name, offset));
    const { spend } = this.#surroundings;
    return this.#at(offset, () => {
      // A function may read whole texts, so that a call's cost grows with its arguments.
      spend(values.reduce<number>((sum, value) => sum + sizeOf(value), 1));
      const result = called.run(this.#callOf(), values);
      if (isList(result)) spend(result.length);
      if (typeof result !== 'string') return result;
      if (result.length > MAX_TEXT_LENGTH) throw new CallError(`the result of ${name} is too long`);
      spend(result.length >> 8);
      return result;
    });
  }

  #callOf(): Call {
    const { spend, parse, maxBytes } = this.#surroundings;
    const collect = (render: (output: Output) => void): string => {
      const output = new Output(maxBytes);
      render(output);
      return output.toString();
    };
    return {
      spend,
      renderTemplate: (name, dot) => collect((output) => this.#call(name, dot, output)),
      renderText: (name, text, dot) =>
        collect((output) => {
          const { template, definitions } = parse(name, text);
          this.#evaluate(template, dot, output, withDefinitions(this.#surroundings, definitions));
        }),
    };
  }

  #argument(dot: Value, operand: Operand, type: ArgumentType, name: string): Value {
    if (operand.kind === 'number') {
      if (type === 'float') return operand.asFloat;
      if (type === 'int' && operand.asInt !== null) return operand.asInt;
    }
    return this.#checked(this.#value(dot, operand), type, name, operand.offset);
  }

  #checked(value: Value, type: ArgumentType, name: string, offset: number): Value {
    if (type === 'dict' && value === null) return new Map<string, Value>();
    if (!fits(value, type))
      throw this.#error(offset, `${name} needs a ${type}, not a ${typeName(value)}`);
    return value;
  }

  #variable(name: string): { readonly name: string; value: Value } | undefined {
    this.#surroundings.spend(this.#variables.length >> 5);
    return this.#variables.findLast((variable) => variable.name === name);
  }

  /** Adds a place to an error without one. */
  #at<Result>(offset: number, run: () => Result): Result {
    try {
      return run();
    } catch (thrown) {
      const error = asCallError(thrown);
      if (error instanceof CallError) throw this.#error(offset, error.message);
      throw error;
    }
  }

  /** Every evaluation takes a step, so that each loop is bounded. */
  #step(offset: number): void {
    this.#at(offset, () => this.#surroundings.spend(1));
  }

  #error(offset: number, reason: string): TemplateError {
    return errorAt(this.#template.source, offset, reason);
  }
}
