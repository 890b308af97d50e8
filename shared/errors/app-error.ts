import type { ErrorCode } from './codes.ts';

export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface AppErrorOptions {
  /** Plain JSON for programs; never a private or secret value. */
  readonly details?: { readonly [key: string]: JsonValue } | undefined;
  /** The next step, as an imperative sentence. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/**
 * An expected failure. The message names the offending value. The code is public and never reused.
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

/** Tells whether a caught value is an expected failure, of a given code if any. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** Returns the message of a caught value, without throwing. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Class name of an error, or Node's code or system call. */
const FIXED_WORD = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;

/**
 * Returns the text of a caught value for records and answers. The message of an unexpected error
 * may quote a secret argument, so the text only has its class, code and system call.
 */
export function tellableMessage(error: unknown): string {
  if (isAppError(error)) return error.message;
  const syscall = error instanceof Error && 'syscall' in error ? error.syscall : undefined;
  const words = [error instanceof Error ? error.name : typeof error, systemCodeOf(error), syscall];
  const known = words.filter((word) => typeof word === 'string' && FIXED_WORD.test(word));
  return `unexpected failure (${known.join(' ')})`;
}

export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Returns the `code` of a Node system error (`ENOENT`), or undefined. */
export function systemCodeOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  return undefined;
}

/** Ends a `switch` over a union, so that an unhandled member does not compile. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
