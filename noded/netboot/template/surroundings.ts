import type { ParsedTemplate } from './nodes.ts';
import type { GoFunction } from './values.ts';

/** A text that is a value, as a template, with what it defines for itself and for what it calls. */
export interface ParsedText {
  readonly template: ParsedTemplate;
  readonly definitions: ReadonlyMap<string, ParsedTemplate>;
}

/** What a rendering may use of what is around it. */
export interface Surroundings {
  readonly functions: ReadonlyMap<string, GoFunction>;
  /**
   * The template of a name that the set has or defines; undefined when there is none.
   * @throws TemplateError when its text is none
   */
  readonly lookUp: (name: string) => ParsedTemplate | undefined;
  /** A text that is a value, as a template. @throws TemplateError */
  readonly parse: (name: string, text: string) => ParsedText;
  /** @throws CallError when all steps that may be taken are taken */
  readonly spend: (steps: number) => void;
  /** What is rendered may have so many. */
  readonly maxBytes: number;
}

/**
 * What a value's text defines is its own, since the value may be a secret: whoever renders the text
 * is told so, and another file of the set is not.
 */
export function withDefinitions(
  surroundings: Surroundings,
  definitions: ReadonlyMap<string, ParsedTemplate>,
): Surroundings {
  if (definitions.size === 0) return surroundings;
  const { lookUp, spend } = surroundings;
  return {
    ...surroundings,
    lookUp(name) {
      spend(1);
      return definitions.get(name) ?? lookUp(name);
    },
  };
}
