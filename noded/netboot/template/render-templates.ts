import { evaluateTemplate } from './evaluate.ts';
import { builtins } from './functions/builtins.ts';
import { dictFunctions } from './functions/dicts.ts';
import { listFunctions } from './functions/lists.ts';
import { numberFunctions } from './functions/numbers.ts';
import { patternFunctions } from './functions/patterns.ts';
import { refusalOf } from './functions/refused.ts';
import { textFunctions } from './functions/text.ts';
import type { ParsedTemplate } from './nodes.ts';
import { parseTemplate } from './parse-template.ts';
import type { TemplateSource } from './read-tokens.ts';
import { withDefinitions, type ParsedText } from './surroundings.ts';
import { asCallError, CallError, errorAt } from './template-error.ts';
import type { GoFunction, Value } from './values.ts';

/** Functions by name. sprig replaces Go's functions of the same name, as in dr-provision. */
const functions: ReadonlyMap<string, GoFunction> = new Map(
  [builtins, textFunctions, listFunctions, dictFunctions, numberFunctions, patternFunctions]
    .map((each) => Object.entries(each))
    .flat(),
);

export function listFunctionNames(): readonly string[] {
  return [...functions.keys(), 'and', 'or'].sort();
}

function checkFunction(name: string): string | null {
  if (functions.has(name) || name === 'and' || name === 'or') return null;
  return refusalOf(name) ?? `function '${name}' does not exist`;
}

/**
 * Parses a text without the templates that it calls. Known but refused functions are accepted: a
 * template that no BootEnv uses may call one.
 * @param maxSteps limits the work
 * @throws TemplateError
 */
export function checkTemplate(source: TemplateSource, maxSteps: number): void {
  let steps = 0;
  const spend = (count: number): void => {
    steps += count;
    if (steps > maxSteps) throw new CallError('the template needs too many steps');
  };
  const check = (name: string): string | null =>
    refusalOf(name) === null ? checkFunction(name) : null;
  placed(source, () => parseTemplate(source, check, spend));
}

export interface TemplateLimits {
  /** Steps of all renderings of the set together. A million take a second in the worst case. */
  readonly maxSteps: number;
  readonly maxBytes: number;
}

/**
 * Creates a set of templates that can call each other. Each is parsed at its first use, so that an
 * invalid template affects only its users. Their definitions are found as well.
 * @param texts by name
 */
export function createTemplateSet(
  texts: ReadonlyMap<string, string>,
  { maxSteps, maxBytes }: TemplateLimits,
) {
  const parsed = new Map<string, ParsedTemplate>();
  const own = new Set<string>();
  const values = new Map<string, ParsedText>();
  let steps = 0;
  const spend = (count: number): void => {
    steps += count;
    if (steps > maxSteps) throw new CallError('the templates need too many steps');
  };
  const parseAll = (name: string, text: string): ParsedText => {
    const definitions = placed({ name, text }, () => {
      spend(1 + (text.length >> 8));
      return new Map(parseTemplate({ name, text }, checkFunction, spend));
    });
    const template = definitions.get(name);
    if (!template) throw new Error('a parser that leaves out the text itself');
    for (const each of definitions.keys())
      if (each === name || texts.has(each)) definitions.delete(each);
    return { template, definitions };
  };
  const parse = (name: string, text: string): ParsedText => {
    spend(1 + (text.length >> 6));
    const key = `${name}\n${text}`;
    const known = values.get(key) ?? parseAll(name, text);
    values.set(key, known);
    return known;
  };
  /** Definitions are shared, but do not replace a name of the set. */
  const load = (name: string, text: string): ParsedTemplate => {
    const known = own.has(name) ? parsed.get(name) : undefined;
    if (known) return known;
    own.add(name);
    const { template, definitions } = parseAll(name, text);
    for (const [each, defined] of definitions) parsed.set(each, defined);
    parsed.set(name, template);
    return template;
  };
  const lookUp = (name: string): ParsedTemplate | undefined => {
    const text = texts.get(name);
    if (text !== undefined) return load(name, text);
    if (!parsed.has(name))
      for (const [each, contents] of texts) {
        spend(1 + (contents.length >> 8));
        if (/\{\{-?\s*(?:define|block)\b/.test(contents)) load(each, contents);
      }
    return parsed.get(name);
  };
  const surroundings = { functions, lookUp, parse, spend, maxBytes };
  return {
    /** Whether the set has a template of this name, without definitions of others. */
    has: (name: string): boolean => texts.has(name),
    /** Renders a template with a value. @throws TemplateError */
    render: (name: string, dot: Value): string =>
      placed({ name, text: '' }, () => {
        const template = lookUp(name);
        if (!template) throw new CallError(`template '${name}' does not exist`);
        return evaluateTemplate(template, dot, surroundings);
      }),
    /** Renders a text that is not in the set. @throws TemplateError */
    renderText: (name: string, text: string, dot: Value): string =>
      placed({ name, text: '' }, () => {
        const { template, definitions } = parse(name, text);
        return evaluateTemplate(template, dot, withDefinitions(surroundings, definitions));
      }),
  };
}

export type TemplateSet = ReturnType<typeof createTemplateSet>;

/** Assigns an error without a place to the whole text. @throws TemplateError */
function placed<Result>(source: TemplateSource, run: () => Result): Result {
  try {
    return run();
  } catch (thrown) {
    const error = asCallError(thrown);
    throw error instanceof CallError ? errorAt(source, 0, error.message) : error;
  }
}
