import {
  type HookBook,
  type HookQuestion,
  type HookVerdict,
  hookVerdict,
} from '../contract/hook-book.ts';
import { AppError } from '../errors/app-error.ts';
import { parseJson } from '../json/parse-json.ts';
import { askSandboxed, type SandboxOptions } from './ask-sandboxed.ts';

/**
 * Checks users' hooks with the appliance's own code, in a sandbox: root parses nothing of them. The
 * verdict is validated as plain data.
 * @returns the order in which they run
 * @throws AppError VALIDATION with the appliance's refusal, which names places and never content;
 * HOST_PREREQUISITE when the program did not answer
 */
export async function judgeHooks(
  question: HookQuestion,
  options: SandboxOptions,
): Promise<HookBook> {
  const verdict = await ask(JSON.stringify(question), options);
  if (verdict.verdict === 'fine') return verdict.book;
  throw new AppError('VALIDATION', verdict.message, { hint: verdict.hint });
}

async function ask(input: string, options: SandboxOptions): Promise<HookVerdict> {
  try {
    return hookVerdict.parse(
      parseJson(await askSandboxed('appliance/judge-hooks', input, options)),
    );
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new AppError('HOST_PREREQUISITE', 'cannot check the hooks on this host', {
      hint: 'The program that checks them runs without privileges. Make the installation folder readable for all users.',
      cause: error,
    });
  }
}
