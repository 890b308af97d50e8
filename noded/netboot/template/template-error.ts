/** Where in a template's text, both from one; the column in characters. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** What is wrong with a template's text, or came up when it was rendered. */
export class TemplateError extends Error {
  readonly template: string;
  readonly position: Position;
  /** Without the place. Whatever was a value when it happened stands in double quotes. */
  readonly reason: string;

  constructor(template: string, position: Position, reason: string) {
    super(`template ${template}:${position.line}:${position.column}: ${reason}`);
    this.name = 'TemplateError';
    this.template = template;
    this.position = position;
    this.reason = reason;
  }
}

/** The error at an offset of a template's text. */
export function errorAt(
  { name, text }: { readonly name: string; readonly text: string },
  offset: number,
  reason: string,
): TemplateError {
  const before = text.slice(0, offset).split('\n');
  const column = [...(before.at(-1) ?? '')].length + 1;
  return new TemplateError(name, { line: before.length, column }, reason);
}

/** What JavaScript itself refuses of a value, such as one too deep: its message may tell of it. */
export function asCallError(error: unknown): unknown {
  const isOfValue =
    error instanceof RangeError || error instanceof TypeError || error instanceof URIError;
  return isOfValue ? new CallError('a value is nested too deeply, too large or not a text') : error;
}

/** What a function cannot do with what it was given; who called it says where that was. */
export class CallError extends Error {}
