import type { Value } from './values.ts';

/** The syntax tree of a template. Offsets are in the text, for errors. */

export interface PipeNode {
  readonly offset: number;
  /** Assigned variables, with their dollar. */
  readonly variables: readonly string[];
  readonly isAssignment: boolean;
  readonly commands: readonly CommandNode[];
}

export interface CommandNode {
  readonly offset: number;
  readonly operands: readonly [Operand, ...Operand[]];
}

export type Operand = { readonly offset: number } & (
  | { readonly kind: 'dot' }
  | { readonly kind: 'nil' }
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipe'; readonly pipe: PipeNode }
  | { readonly kind: 'chain'; readonly of: Operand; readonly names: readonly string[] }
  | NumberLiteral
  | { readonly kind: 'literal'; readonly value: string | boolean }
);

/** A number has every type that it fits. The default type is that of its spelling. */
export interface NumberLiteral {
  readonly kind: 'number';
  readonly value: Value;
  readonly asInt: bigint | null;
  readonly asFloat: number;
}

export type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly offset: number; readonly pipe: PipeNode }
  | {
      readonly kind: 'if' | 'with' | 'range';
      readonly offset: number;
      readonly pipe: PipeNode;
      readonly then: readonly Node[];
      readonly otherwise: readonly Node[] | null;
    }
  | {
      readonly kind: 'template';
      readonly offset: number;
      readonly name: string;
      readonly pipe: PipeNode | null;
    }
  | { readonly kind: 'break' | 'continue' };

/** The text of a source, or a `define` or `block` in it. */
export interface ParsedTemplate {
  readonly source: { readonly name: string; readonly text: string };
  readonly nodes: readonly Node[];
}
