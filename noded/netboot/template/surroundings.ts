import type { ParsedTemplate } from './nodes.ts';
import type { GoFunction } from './values.ts';

export interface ParsedText {
  readonly template: ParsedTemplate;
  readonly definitions: ReadonlyMap<string, ParsedTemplate>;
}

export interface Surroundings {
  readonly functions: ReadonlyMap<string, GoFunction>;
  /**
   * Finds a template that the set has or defines.
   * @throws TemplateError for an invalid text
   */
  readonly lookUp: (name: string) => ParsedTemplate | undefined;
  /** Parses the text of a value. @throws TemplateError */
  readonly parse: (name: string, text: string) => ParsedText;
  /** @throws CallError when no steps are left */
  readonly spend: (steps: number) => void;
  readonly maxBytes: number;
}

/**
 * Adds definitions of a value's text. They are visible to its own rendering only, since the value
 * may be a secret: its reader is recorded, and another file's would not be.
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
