import { text } from 'node:stream/consumers';
import { hookQuestion, type HookVerdict } from '#shared/contract/hook-book.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { describeBook, readBook } from './agent/hooks/read-book.ts';

/**
 * Says what the appliance will say of hooks: a HookQuestion on the standard input, a HookVerdict on
 * the standard output. It is run without any right (shared/sandbox/judge-hooks.ts), since the
 * documents are the user's.
 */
function judge(input: string): HookVerdict {
  try {
    const { documents, facts } = hookQuestion.parse(JSON.parse(input));
    return { verdict: 'fine', book: describeBook(readBook(documents, facts)) };
  } catch (error) {
    if (!isAppError(error, 'HOOK_FAILED')) throw withoutContent(error);
    const { message, hint } = error;
    return { verdict: 'refused', message, ...(hint !== undefined && { hint }) };
  }
}

/** What a library says of a document may repeat it. */
function withoutContent(error: unknown): AppError {
  return new AppError('INTERNAL', error instanceof Error ? error.name : 'unknown');
}

process.stdout.write(JSON.stringify(judge(await text(process.stdin))));
