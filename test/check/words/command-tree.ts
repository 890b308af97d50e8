import type { Command } from 'commander';
import { createApplianceProgram, type ApplianceActions } from '../../../appliance/program.ts';
import { flagsOf, isOptionName, OPTIONS } from '../../../metad/config/options.ts';
import { createNodedProgram } from '../../../noded/wiring/program.ts';
import { loadPrograms } from '../../../scripts/docs/pages/commands.ts';
import { standIn } from '../../../scripts/docs/stand-in.ts';

/** The options of a command, and its subcommands by name and alias. */
export interface CommandNode {
  /** `--force`, `-f` */
  readonly options: ReadonlySet<string>;
  readonly commands: ReadonlyMap<string, CommandNode>;
  /** A command for the guest follows, with options of its own. */
  readonly isForGuest: boolean;
}

/** Options that every program takes. */
const COMMON = ['--help', '-h', '--version', '-V', '--help-all'];

/** Loads the commands and options of all programs, by program. */
export async function loadCommandTree(): Promise<ReadonlyMap<string, CommandNode>> {
  const clients = await loadPrograms();
  const daemons = [createNodedProgram(''), createApplianceProgram(standIn<ApplianceActions>())];
  const metad = Object.keys(OPTIONS)
    .filter(isOptionName)
    .flatMap((name) => flagsIn(flagsOf(name)));
  return new Map<string, CommandNode>([
    ...[...clients, ...daemons].map((program) => [program.name(), nodeOf(program)] as const),
    [
      'gnt-metad',
      { options: new Set([...COMMON, ...metad]), commands: new Map(), isForGuest: false },
    ],
  ]);
}

function nodeOf(command: Command): CommandNode {
  const options = command.options.flatMap(({ flags }) => flagsIn(flags));
  const children = command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].map((name) => [name, nodeOf(child)] as const),
  );
  // Commander adds `help` only when it parses.
  const help = { options: new Set(COMMON), commands: new Map(), isForGuest: false };
  return {
    options: new Set([...COMMON, ...options]),
    commands: new Map<string, CommandNode>(
      children.length === 0 ? [] : [['help', help], ...children],
    ),
    isForGuest: command.registeredArguments[1]?.name() === 'command',
  };
}

/** `-C, --communication <yes|no>` */
function flagsIn(flags: string): readonly string[] {
  return flags.match(/(?<![\w-])--?[a-zA-Z][\w-]*/g) ?? [];
}

export function allOptions(tree: ReadonlyMap<string, CommandNode>): ReadonlySet<string> {
  const collect = ({ options, commands }: CommandNode): readonly string[] => [
    ...options,
    ...[...commands.values()].flatMap(collect),
  ];
  return new Set([...tree.values()].flatMap(collect));
}
