import { isAppError } from '../errors/app-error.ts';
import { maskDetails } from '../secret/mask-json.ts';

/** Causes below this depth are omitted. */
const MAX_DEPTH = 4;
/** Errors of one AggregateError that are described. */
const MAX_ERRORS = 5;
const MAX_MESSAGE_LENGTH = 8192;
/** In place of text that may quote an argument or parsed input; code and frames show the place. */
const NOT_SHOWN = '<not shown>';
/** Facts that Node gives with an error. `input`, `cmd` and the like may hold a password. */
const NODE_FACTS = ['code', 'errno', 'syscall', 'path', 'address', 'port'] as const;
/** `    at read (node:fs:12:3)`, `    at file:///x.ts:1:2` */
const FRAME = /^ {4}at (?:[^\n]*[( ])?(?:node:|file:|\/)[^\s()]*:\d+:\d+\)?$/;

export interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly [fact: string]: unknown;
}

/**
 * Describes a thrown value for a log record. Messages of Node's own errors are omitted, since they
 * quote arguments (`Received 'VALUE'`) and parsed text.
 * @param mask hides private and secret values in messages and facts
 */
export function describeError(
  error: unknown,
  mask: (text: string) => string = (text) => text,
  depth = 0,
): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? mask(error) : typeof error;
  const described: DescribedError = {
    type: error.constructor.name,
    message: mask(messageWithoutQuotations(error)).slice(0, MAX_MESSAGE_LENGTH),
    stack: framesOf(error),
    ...factsOf(error, mask),
  };
  if (depth >= MAX_DEPTH) return described;
  const { cause } = error;
  return {
    ...described,
    ...(cause !== undefined && { cause: describeError(cause, mask, depth + 1) }),
    ...(error instanceof AggregateError && {
      errors: error.errors
        .slice(0, MAX_ERRORS)
        .map((one: unknown) => describeError(one, mask, depth + 1)),
    }),
  };
}

function messageWithoutQuotations(error: Error): string {
  if (isAppError(error)) return error.message;
  if ('code' in error && String(error.code).startsWith('ERR_')) return NOT_SHOWN;
  if (error instanceof SyntaxError) return error.message.replace(/"[^]*/, NOT_SHOWN);
  return error.message;
}

function factsOf(error: Error, mask: (text: string) => string): Record<string, unknown> {
  if (isAppError(error)) {
    const { code, hint, details } = error;
    return {
      code,
      details: maskDetails(details, mask),
      ...(hint !== undefined && { hint: mask(hint) }),
    };
  }
  const facts: Record<string, unknown> = {};
  for (const name of NODE_FACTS) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'number') facts[name] = value;
    if (typeof value === 'string') facts[name] = mask(value);
  }
  return facts;
}

/** Returns the frames without V8's leading message. */
function framesOf(error: Error): string {
  const lines = (error.stack ?? '').replace(error.message, '').split('\n');
  return lines.filter((line) => FRAME.test(line)).join('\n');
}
