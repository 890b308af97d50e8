import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../terminal/context.ts';
import { promptHidden } from '../terminal/prompt.ts';

const OPTION = '--personalization-password';

export interface PackageAccessOptions {
  readonly personalizationUser?: string;
  readonly personalizationPassword?: string;
}

/**
 * Reads the password of a personalization package: from a file or stdin, from the command line with
 * a warning, or from a prompt.
 */
export async function readPackagePassword(
  context: Context,
  options: PackageAccessOptions,
): Promise<string | undefined> {
  const given = options.personalizationPassword;
  if (given !== undefined) {
    if (!given.startsWith('@')) {
      context.warn(
        `other users can see the password on the command line: use ${OPTION} @FILE or @-`,
      );
    }
    return context.values.resolve(OPTION, given);
  }
  if (options.personalizationUser === undefined) return undefined;
  if (context.terminal.stdin.isTTY) return promptHidden(context, 'password of the package: ');
  throw new AppError('USAGE', `--personalization-user requires ${OPTION}`, {
    hint: `Add ${OPTION} @FILE, or @- to read it from stdin`,
  });
}
