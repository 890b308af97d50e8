import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../terminal/context.ts';
import { confirm } from '../terminal/prompt.ts';
import type { SubmitOptions } from './submit.ts';

export interface ForceOptions extends SubmitOptions {
  readonly force?: boolean;
}

/**
 * Asks before a loss of data or before trust is given. Refuses without a terminal.
 * @throws AppError USAGE, NOT_CONFIRMED, INTERRUPTED
 */
export async function confirmLoss(
  context: Context,
  what: string,
  options: ForceOptions,
  hint = 'Add --force',
): Promise<void> {
  if (options.force || options.dryRun) return;
  if (!context.terminal.stdin.isTTY) {
    throw new AppError('USAGE', `${what} There is no terminal to confirm it`, {
      hint,
    });
  }
  if (await confirm(context, `${what} Continue?`)) return;
  throw new AppError('NOT_CONFIRMED', 'nothing was changed');
}
