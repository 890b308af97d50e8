import { randomBytes } from 'node:crypto';

/**
 * What yip's templates can say in an installation: values by their names. A text that names none of
 * them stays as it is, braces included, since it may be meant for somebody else.
 */
const templateValues = [
  ...['Values.os.name', 'Values.os.vendor', 'Values.os.version', 'Values.os.architecture'],
  ...['Values.node.hostname', 'Values.Random', 'UUID', 'Random'],
] as const;
export type TemplateValues = Readonly<Record<(typeof templateValues)[number], string>>;

/** What an action of Go's text/template looks like, with texts in quotes. */
const ACTION = /\{\{((?:"[^"]*"|`[^`]*`|[^{}"`])*)\}\}/g;
/** Only these make it yip's. */
const IS_OURS = /\{\{[^{}]*\.Values\b/;
const IS_OURS_IN_HOSTNAME = /\{\{/;

/**
 * Why a text cannot be rendered by an installation, or null. Pure; the text is not repeated, but
 * for the name of a value.
 */
export function findTemplateFault(text: string, isHostname = false): string | null {
  if (!isTemplate(text, isHostname)) return null;
  for (const [, action = ''] of text.matchAll(ACTION)) {
    const word = action.trim();
    if (isLiteral(word) || isKnown(word)) continue;
    return /^\.[\w.]{1,60}$/.test(word)
      ? `templates of an installation have no value ${word}`
      : 'templates of an installation can only use values by name, without functions and conditions';
  }
  // What is left of braces is none that Go would take.
  return /\{\{|\}\}/.test(text.replace(ACTION, '')) ? 'the template is not closed' : null;
}

/** @param text that has no fault */
export function renderTemplate(
  text: string,
  values: () => TemplateValues,
  isHostname = false,
): string {
  if (!isTemplate(text, isHostname)) return text;
  const known = values();
  return text.replace(ACTION, (_, action: string) => {
    const word = action.trim();
    if (isKnown(word)) return known[word.slice(1) as keyof TemplateValues]; // It is one of them.
    return word.slice(1, -1);
  });
}

/** Whether a text holds what a reader may take for a template, and it stays. */
export function staysWithBraces(text: string): boolean {
  return text.includes('{{') && !isTemplate(text, false);
}

/** As long as yip's. */
export function randomWord(): string {
  return randomBytes(16).toString('hex');
}

function isTemplate(text: string, isHostname: boolean): boolean {
  return (isHostname ? IS_OURS_IN_HOSTNAME : IS_OURS).test(text);
}

function isKnown(word: string): boolean {
  return templateValues.some((value) => `.${value}` === word);
}

function isLiteral(word: string): boolean {
  return /^"[^"\\]*"$|^`[^`]*`$/.test(word);
}
