import type { Command } from 'commander';
import { addCompletion } from './commands/completion.ts';
import { type ProgramName, programs } from './programs.ts';
import type { Context } from './terminal/context.ts';
import { isHelpShown, prepareForUse } from './usage.ts';

/** Returns the command tree of a program, complete or reduced to the context's commands. */
export async function createCommand(
  name: ProgramName,
  context: Context,
  { version, ...output }: Parameters<typeof prepareForUse>[1] & { readonly version: string },
): Promise<Command> {
  const made = await programs[name](context);
  addCompletion(made, context);
  made.version(version, '-V, --version', 'Show the version');
  made.helpOption('-h, --help', 'Show this help');
  prepareForUse(made, output);
  return made;
}

/**
 * Returns the output of `--help`, by `PROGRAM` and `PROGRAM.COMMAND`, and of `--help-all`, by the
 * same names with the suffix `.all`.
 */
export async function renderHelp(
  name: ProgramName,
  options: { readonly version: string; readonly columns: number },
): Promise<ReadonlyMap<string, string>> {
  let text = '';
  const write = (piece: string): void => void (text += piece);
  // No command runs, so other members of the context are not used.
  const context = { program: name, only: null } as Context;
  const program = await createCommand(name, context, { ...options, write });
  const show = async (words: readonly string[]): Promise<string> => {
    text = '';
    try {
      await program.parseAsync([...words], { from: 'user' });
    } catch (error) {
      if (!isHelpShown(error)) throw error;
    }
    return text;
  };
  const shown = new Map<string, string>();
  const words = [[], ...program.commands.map((command) => [command.name()])];
  // After --help-all a command keeps showing all options, so it comes last.
  for (const [option, suffix] of [
    ['--help', []],
    ['--help-all', ['all']],
  ] as const) {
    for (const each of words)
      shown.set([name, ...each, ...suffix].join('.'), await show([...each, option]));
  }
  return shown;
}
