import type { Command } from 'commander';
import {
  commandPage,
  commandsOf,
  describeCommand,
  programPage,
  synopsisOf,
} from '../../../cluster-cli/manual/command-pages.ts';
import { type Block, code, heading, nest, type Page } from '../../../cluster-cli/manual/page.ts';
import { addCompletion } from '../../../cluster-cli/commands/completion.ts';
import { isProgramName, programs } from '../../../cluster-cli/programs.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';
import type { DocumentedPage } from '../documented-page.ts';

export async function loadPrograms(): Promise<readonly Command[]> {
  const names = Object.keys(programs).filter(isProgramName);
  return Promise.all(
    names.map(async (name) => {
      // Commands are not executed, so that the rest of the context is not read.
      const context = { program: name, only: null } as Context;
      const program = await programs[name](context);
      addCompletion(program, context);
      return program;
    }),
  );
}

/** Returns a Markdown page for each program, and a manual page for each command. */
export function commandPages(program: Command): readonly DocumentedPage[] {
  const page = programPage(program);
  const commands = commandsOf(program);
  const name = program.name();
  return [
    {
      file: `commands/${name}.md`,
      title: name,
      page: { ...page, blocks: withCommands(program, page) },
      isManual: false,
    },
    { file: null, title: name, page, isManual: true },
    ...commands.map((command) => ({
      file: null,
      title: `${name} ${command.name()}`,
      page: commandPage(program, command),
      isManual: true,
    })),
  ];
}

function withCommands(program: Command, { blocks }: Page): readonly Block[] {
  return [
    ...blocks,
    ...commandsOf(program).flatMap((command) => [
      heading(`${program.name()} ${command.name()}`),
      code(`${program.name()} ${synopsisOf(command)}`),
      ...nest(describeCommand(command)),
    ]),
  ];
}
