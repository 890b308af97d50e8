import { AppError } from '#shared/errors/app-error.ts';
import { errorCodes, type ErrorCode } from '#shared/errors/codes.ts';
import type { SeededRandom } from '../lab/seeded-random.ts';

/**
 * A parser of foreign bytes with its oracle. Everything about a case is in its bytes, so that a
 * file of them repeats it.
 */
export interface Target {
  readonly name: string;
  /** Mostly valid inputs, changed: pure noise gets no further than the first check. */
  generate(random: SeededRandom): Buffer;
  /** What the parser needs around it; nothing for a pure one. */
  open(): Promise<Oracle>;
  /** Cases at once, where a case is mostly waiting; otherwise each is measured by itself. */
  readonly concurrency?: number;
  /** How many inputs a case stands for: a connection has several requests. */
  readonly inputsPerCase?: number;
}

export interface Oracle extends AsyncDisposable {
  /** Throws when the parser does what it must not. */
  check(input: Buffer): void | Promise<void>;
}

/** For a parser that needs nothing. */
export async function openPure(check: Oracle['check']): Promise<Oracle> {
  return { check, [Symbol.asyncDispose]: async () => undefined };
}

/** Messages are for a person and a log: they name a value, and do not repeat a file. */
const MAX_MESSAGE_LENGTH = 10_000;
const MAX_CAUSES = 10;

/**
 * A refusal must be one of ours with one of these public codes; that it wraps a crash does not make
 * it one.
 * @throws Error saying what is wrong with it; its cause is what was thrown
 */
export function assertRefusal(thrown: unknown, codes: readonly ErrorCode[]): void {
  if (!(thrown instanceof AppError)) throw new Error('no refusal, but a crash', { cause: thrown });
  if (!(thrown.code in errorCodes) || !codes.includes(thrown.code))
    throw new Error(`refused with ${thrown.code}`, { cause: thrown });
  if (thrown.message.length > MAX_MESSAGE_LENGTH)
    throw new Error(`a refusal of ${thrown.message.length} characters`);
  assertNoCrash(thrown);
}

/** @throws Error when this error, or one that it wraps, is what JavaScript throws for a bug */
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
