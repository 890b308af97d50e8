import type { Command } from 'commander';
import { addCompletion } from './commands/completion.ts';
import { type ProgramName, programs } from './programs.ts';
import type { Context } from './terminal/context.ts';
import { isHelpShown, prepareForUse } from './usage.ts';

/** The command tree of a program, all or only what the context asks for. */
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
 * Returns what `--help` prints, by `PROGRAM` and `PROGRAM.COMMAND`, and what `--help-all` prints,
 * by the same names with `.all` behind them.
 */
export async function renderHelp(
  name: ProgramName,
  options: { readonly version: string; readonly columns: number },
): Promise<ReadonlyMap<string, string>> {
  let text = '';
  const write = (piece: string): void => void (text += piece);
  // No command runs, so that nothing else of the context is used.
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
  // A command keeps showing all once --help-all was given.
  for (const [option, suffix] of [
    ['--help', []],
    ['--help-all', ['all']],
  ] as const) {
    for (const each of words)
      shown.set([name, ...each, ...suffix].join('.'), await show([...each, option]));
  }
  return shown;
}
