/** A place in a template's text, both from 1; the column is in characters. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export class TemplateError extends Error {
  readonly template: string;
  readonly position: Position;
  /** Without the place. Values are in double quotes. */
  readonly reason: string;

  constructor(template: string, position: Position, reason: string) {
    super(`template ${template}:${position.line}:${position.column}: ${reason}`);
    this.name = 'TemplateError';
    this.template = template;
    this.position = position;
    this.reason = reason;
  }
}

export function errorAt(
  { name, text }: { readonly name: string; readonly text: string },
  offset: number,
  reason: string,
): TemplateError {
  const before = text.slice(0, offset).split('\n');
  const column = [...(before.at(-1) ?? '')].length + 1;
  return new TemplateError(name, { line: before.length, column }, reason);
}

/**
 * Replaces JavaScript's own errors about a value, such as one nested too deeply. Their messages can
 * contain the value.
 */
export function asCallError(error: unknown): unknown {
  const isOfValue =
    error instanceof RangeError || error instanceof TypeError || error instanceof URIError;
  return isOfValue ? new CallError('a value is nested too deeply, too large or not a text') : error;
}

/** An error of a function. Its caller adds the place. */
export class CallError extends Error {}
