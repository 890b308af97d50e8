import { randomBytes } from 'node:crypto';

/**
 * Values of yip's templates in an installation. A text without one of them stays as it is, braces
 * included, since it may be for another template engine.
 */
const templateValues = [
  ...['Values.os.name', 'Values.os.vendor', 'Values.os.version', 'Values.os.architecture'],
  ...['Values.node.hostname', 'Values.Random', 'UUID', 'Random'],
] as const;
export type TemplateValues = Readonly<Record<(typeof templateValues)[number], string>>;

const ACTION = /\{\{((?:"[^"]*"|`[^`]*`|[^{}"`])*)\}\}/g;
/** Marks of yip's templates. */
const IS_OURS = /\{\{[^{}]*\.Values\b/;
const IS_OURS_IN_HOSTNAME = /\{\{/;

/**
 * Returns the reason why a text cannot be rendered, or null. Contains no text but the name of a
 * value. Pure.
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
  // Remaining braces are not a Go action.
  return /\{\{|\}\}/.test(text.replace(ACTION, '')) ? 'the template is not closed' : null;
}

/** @param text a text without a fault */
export function renderTemplate(
  text: string,
  values: () => TemplateValues,
  isHostname = false,
): string {
  if (!isTemplate(text, isHostname)) return text;
  const known = values();
  return text.replace(ACTION, (_, action: string) => {
    const word = action.trim();
    if (isKnown(word)) return known[word.slice(1) as keyof TemplateValues]; // One of the keys.
    return word.slice(1, -1);
  });
}

/** Whether a text contains braces and is not rendered. */
export function staysWithBraces(text: string): boolean {
  return text.includes('{{') && !isTemplate(text, false);
}

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
