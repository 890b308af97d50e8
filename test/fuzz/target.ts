import { AppError } from '#shared/errors/app-error.ts';
import { errorCodes, type ErrorCode } from '#shared/errors/codes.ts';
import type { SeededRandom } from '../lab/seeded-random.ts';

/**
 * A parser of foreign bytes with its oracle. The input's bytes determine a case completely, so that
 * a file reproduces it.
 */
export interface Target {
  readonly name: string;
  /** Returns a changed valid input in most cases, because noise fails at a parser's first check. */
  generate(random: SeededRandom): Buffer;
  /** Starts the environment of the parser. */
  open(): Promise<Oracle>;
  /**
   * Number of concurrent cases, for targets that mostly wait. Without it each case is measured
   * alone.
   */
  readonly concurrency?: number;
  /** Number of inputs in a case, such as the requests of a connection. */
  readonly inputsPerCase?: number;
}

export interface Oracle extends AsyncDisposable {
  /** Throws when the parser misbehaves. */
  check(input: Buffer): void | Promise<void>;
}

/** Returns an oracle for a parser without an environment. */
export async function openPure(check: Oracle['check']): Promise<Oracle> {
  return { check, [Symbol.asyncDispose]: async () => undefined };
}

/** Messages are for users and logs, so they must not repeat a whole file. */
const MAX_MESSAGE_LENGTH = 10_000;
const MAX_CAUSES = 10;

/**
 * Checks that a refusal is an AppError with an allowed public code, and does not wrap a crash.
 * @throws Error with the problem; its cause is the thrown value
 */
export function assertRefusal(thrown: unknown, codes: readonly ErrorCode[]): void {
  if (!(thrown instanceof AppError)) throw new Error('no refusal, but a crash', { cause: thrown });
  if (!(thrown.code in errorCodes) || !codes.includes(thrown.code))
    throw new Error(`refused with ${thrown.code}`, { cause: thrown });
  if (thrown.message.length > MAX_MESSAGE_LENGTH)
    throw new Error(`a refusal of ${thrown.message.length} characters`);
  assertNoCrash(thrown);
}

/** @throws Error when this error or one of its causes is a JavaScript error for a bug */
export function assertNoCrash(thrown: unknown): void {
  let error = thrown;
  for (let depth = 0; depth < MAX_CAUSES && error instanceof Error; depth += 1) {
    if (
      error instanceof TypeError ||
      error instanceof RangeError ||
      error instanceof ReferenceError
    )
      throw new Error('a crash dressed as a refusal', { cause: error });
    error = error.cause;
  }
}
