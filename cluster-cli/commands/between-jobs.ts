import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailure } from '../failures/failure.ts';
import type { Context } from '../terminal/context.ts';

/** Names in one message. */
const MAX_NAMED = 20;

export interface BetweenJobs extends Disposable {
  /** @throws AppError INTERRUPTED */
  throwIfInterrupted(): void;
}

/**
 * Holds the first interrupt until the next job would begin, so that a command with several jobs can
 * report the rest. A second interrupt ends the command at once.
 */
export function holdInterrupt({ interrupts }: Pick<Context, 'interrupts'>): BetweenJobs {
  let isInterrupted = false;
  const release = interrupts.take(() => {
    isInterrupted = true;
    release();
  });
  return {
    throwIfInterrupted() {
      if (isInterrupted) throw new AppError('INTERRUPTED', 'interrupted');
    },
    [Symbol.dispose]: release,
  };
}

/**
 * Returns the reason why one of several jobs was refused or failed.
 * @throws the error itself if the rest would fail too
 */
export function refusalOf(error: unknown): string {
  if (!(error instanceof CommandFailure) || error.exitStatus > 2) throw error;
  return `${error.message} (${error.code})${error.hint === null ? '' : `; ${error.hint}`}`;
}

/** Returns `a, b and 480 more`. */
export function nameSome(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  const named = names.slice(0, MAX_NAMED).join(', ');
  return more > 0 ? `${named} and ${more} more` : named;
}
