import { text } from 'node:stream/consumers';
import { hookQuestion, type HookVerdict } from '#shared/contract/hook-book.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { describeBook, readBook } from './agent/hooks/read-book.ts';

/**
 * Validates hooks as the appliance will: a HookQuestion on the standard input, a HookVerdict on the
 * standard output. It runs as a sandboxed program (shared/sandbox/judge-hooks.ts), since the
 * documents are untrusted.
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

/** Hides the message of a library's error, which may contain text of the document. */
function withoutContent(error: unknown): AppError {
  return new AppError('INTERNAL', error instanceof Error ? error.name : 'unknown');
}

process.stdout.write(JSON.stringify(judge(await text(process.stdin))));
