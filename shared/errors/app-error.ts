import type { ErrorCode } from './codes.ts';

export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface AppErrorOptions {
  /** Plain JSON for machines; never a private or secret value. */
  readonly details?: { readonly [key: string]: JsonValue } | undefined;
  /** The next step, as an imperative sentence. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/**
 * An expected failure: the message names the offending value, the code is public and never reused.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: { readonly [key: string]: JsonValue };
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.details = options.details ?? {};
    this.hint = options.hint;
  }
}

/** Narrows a caught value to an expected failure, of one code when given. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** The message of whatever was thrown, for a place that must not throw itself. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A class of errors, and a code or system call of Node. */
const FIXED_WORD = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;

/**
 * Returns what a record or an answer may say of a thrown value. The message of an unexpected error
 * may quote an argument, and with it a secret, so only its class, code and system call are told.
 */
export function tellableMessage(error: unknown): string {
  if (isAppError(error)) return error.message;
  const syscall = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  const words = [error instanceof Error ? error.name : typeof error, systemCodeOf(error), syscall];
  const known = words.filter((word) => typeof word === 'string' && FIXED_WORD.test(word));
  return `unexpected failure (${known.join(' ')})`;
}

/** Whatever was thrown, as an error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The `code` of a Node system error (`ENOENT`), or undefined. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  return undefined;
}

/** Ends a `switch` over a union: a new member that is not handled does not compile. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
