import { Command, InvalidArgumentError, Option } from 'commander';
import { ownValue } from '#shared/json/own-value.ts';
import type { Context } from '../terminal/context.ts';

/** How an argument or option value is completed in a shell. */
export type CompletionKind =
  | 'instance'
  | 'os'
  | 'job'
  | 'node'
  | 'image'
  | 'catalogue'
  | 'profile'
  | 'network'
  | 'bootenv'
  | 'file';

/** What shell completion and manual pages need and commander does not hold. */
export interface CommandExtras {
  readonly completeArguments: readonly CompletionKind[];
  readonly examples: readonly string[];
  readonly notes: readonly string[];
}

const extras = new WeakMap<Command, CommandExtras>();
const optionKinds = new WeakMap<Option, CompletionKind>();
/** Commands of a program that are asked for, where not all are. */
const wantedCommands = new WeakMap<Command, readonly string[]>();
const NO_EXTRAS: CommandExtras = { completeArguments: [], examples: [], notes: [] };

export function extrasOf(command: Command): CommandExtras {
  return extras.get(command) ?? NO_EXTRAS;
}

export function completionOf(option: Option): CompletionKind | undefined {
  return optionKinds.get(option);
}

export interface CommandSpec {
  /** `add` with its arguments: `add <name>`. */
  readonly usage: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly arguments?: Readonly<Record<string, string>>;
  readonly completeArguments?: readonly CompletionKind[];
  readonly examples?: readonly string[];
  readonly notes?: readonly string[];
  readonly options?: readonly OptionMaker[];
  readonly isHidden?: boolean;
}

/**
 * A program without commands yet. Of those, only the ones are made that the context names, if it
 * does.
 */
export function createProgram(
  { only }: Pick<Context, 'only'>,
  name: string,
  description: string,
): Command {
  const program = new Command(name).description(description);
  if (only !== null) wantedCommands.set(program, only);
  return program;
}

/** Adds a subcommand to a program. Every command takes `--debug`. */
export function addCommand(program: Command, spec: CommandSpec): Pick<Command, 'action'> {
  const [name = '', ...parameters] = spec.usage.split(' ');
  const isWanted = [name, ...(spec.aliases ?? [])].some(
    (word) => wantedCommands.get(program)?.includes(word) ?? true,
  );
  if (!isWanted) return NOT_MADE;
  const command = program.command(name, { hidden: spec.isHidden ?? false });
  for (const parameter of parameters) {
    const key = parameter.replaceAll(/[<>[\].]/g, '');
    command.argument(parameter, ownValue(spec.arguments ?? {}, key) ?? '');
  }
  command.aliases([...(spec.aliases ?? [])]);
  command.summary(spec.summary).description(spec.description ?? `${spec.summary}.`);
  for (const { make } of spec.options ?? []) command.addOption(make());
  command.addOption(new Option('--debug', 'show the trace of an error').helpGroup('Other:'));
  command.addHelpOption(new Option('-h, --help', 'show this help').helpGroup('Other:'));
  command.allowExcessArguments(false);
  extras.set(command, {
    completeArguments: spec.completeArguments ?? [],
    examples: spec.examples ?? [],
    notes: spec.notes ?? [],
  });
  command.addHelpText('after', () => formatExtras(extrasOf(command)));
  return command;
}

/** Takes the place of a command that is not asked for. */
const NOT_MADE: Pick<Command, 'action'> = { action: () => new Command() };

function formatExtras({ notes, examples }: CommandExtras): string {
  const shown = notes.map((note) => `\n${note}`);
  if (examples.length > 0) {
    shown.push(`\nExamples:\n${examples.map((example) => `  ${example}`).join('\n')}`);
  }
  return shown.join('\n');
}

export interface OptionSpec {
  readonly group?: string;
  readonly choices?: readonly string[];
  readonly complete?: CompletionKind;
  /** The option may be given several times and is a list. */
  readonly isRepeatable?: boolean;
  /** The command is refused without it. */
  readonly isMandatory?: boolean;
  readonly isHidden?: boolean;
}

/** An option that is made with the command that has it: most commands of a program never are. */
export interface OptionMaker {
  /** `--os-image`; undefined for one of a letter. */
  readonly long: string | undefined;
  readonly make: () => Option;
}

function laterOption(flags: string, make: () => Option): OptionMaker {
  return { long: /--[a-z-]+/.exec(flags)?.[0], make };
}

export function option(flags: string, description: string, spec: OptionSpec = {}): OptionMaker {
  return laterOption(flags, () => makeOption(flags, description, spec));
}

function makeOption(flags: string, description: string, spec: OptionSpec): Option {
  const made = new Option(flags, description);
  if (spec.choices) made.choices([...spec.choices]);
  if (spec.group) made.helpGroup(spec.group);
  if (spec.isHidden) made.hideHelp();
  if (spec.isMandatory) made.makeOptionMandatory();
  if (spec.isRepeatable) {
    made.argParser((value: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      value,
    ]);
  }
  if (spec.complete) optionKinds.set(made, spec.complete);
  return made;
}

/** A yes/no option, in Ganeti's spelling. Its value is a boolean. */
export function yesNo(flags: string, description: string, spec: OptionSpec = {}): OptionMaker {
  return laterOption(flags, () =>
    makeOption(flags, description, spec).argParser((value) => {
      const lower = value.toLowerCase();
      if (lower === 'yes' || lower === 'true') return true;
      if (lower === 'no' || lower === 'false') return false;
      throw new InvalidArgumentError(`Invalid boolean value '${value}', write yes or no`);
    }),
  );
}

/** An option whose value is a whole number from `minimum` on. */
export function wholeNumber(
  flags: string,
  description: string,
  spec: OptionSpec & { readonly minimum?: number } = {},
): OptionMaker {
  const minimum = spec.minimum ?? 0;
  return laterOption(flags, () =>
    makeOption(flags, description, spec).argParser((value) => {
      if (/^\d{1,15}$/.test(value) && Number(value) >= minimum) return Number(value);
      throw new InvalidArgumentError(`write a whole number of ${minimum} or more`);
    }),
  );
}

export const jsonOption = (): OptionMaker => option('--json', 'print JSON', { group: 'Output:' });

/** Options of every command that makes a job. */
export function jobOptions(): readonly OptionMaker[] {
  const group = 'Job:';
  return [
    option('--submit', 'print the id of the job and do not wait for it', { group }),
    option('--dry-run', 'check everything, change nothing', { group }),
    option('--json', 'print the finished job as JSON (with --submit: {"id":N})', { group }),
  ];
}
