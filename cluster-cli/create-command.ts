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
  made.version(version, '-V, --version', 'show the version');
  prepareForUse(made, output);
  return made;
}

/** What `PROGRAM --help` and `PROGRAM COMMAND --help` print, by `PROGRAM` and `PROGRAM.COMMAND`. */
export async function renderHelp(
  name: ProgramName,
  options: { readonly version: string; readonly columns: number },
): Promise<ReadonlyMap<string, string>> {
  let text = '';
  const write = (piece: string): void => void (text += piece);
  // Nothing is carried out: no more of it is asked for.
  const context = { program: name, only: null } as Context;
  const program = await createCommand(name, context, { ...options, write });
  const show = async (words: readonly string[]): Promise<string> => {
    text = '';
    try {
      await program.parseAsync([...words, '--help'], { from: 'user' });
    } catch (error) {
      if (!isHelpShown(error)) throw error;
    }
    return text;
  };
  const shown = new Map<string, string>([[name, await show([])]]);
  for (const command of program.commands) {
    shown.set(`${name}.${command.name()}`, await show([command.name()]));
  }
  return shown;
}
