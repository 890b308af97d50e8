import { Command, InvalidArgumentError, Option } from 'commander';
import type { KeyTable } from '#shared/contract/parameter-keys.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Context } from '../terminal/context.ts';

/** How a shell completes an argument or option value. */
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

/** An option whose value is a list of known keys. */
export interface KeyedOption {
  readonly keys: KeyTable;
  /** Syntax of the whole value, such as `N:key=value,key=value`. */
  readonly syntax: string;
}

/** Properties for help, shell completion and manual pages that commander does not hold. */
export interface CommandExtras {
  readonly completeArguments: readonly CompletionKind[];
  readonly examples: readonly string[];
  readonly notes: readonly string[];
  /** Paragraphs of the manual page, after the description. */
  readonly explanation: readonly string[];
  /** Long names of the options that `--help` shows; null: all. `--help-all` shows the others. */
  readonly essentials: readonly string[] | null;
}

const extras = new WeakMap<Command, CommandExtras>();
const optionKinds = new WeakMap<Option, CompletionKind>();
const optionKeys = new WeakMap<Option, KeyedOption>();
/** Wanted commands of a program, if not all. */
const wantedCommands = new WeakMap<Command, readonly string[]>();
const NO_EXTRAS: CommandExtras = {
  completeArguments: [],
  examples: [],
  notes: [],
  explanation: [],
  essentials: null,
};

export function extrasOf(command: Command): CommandExtras {
  return extras.get(command) ?? NO_EXTRAS;
}

export function completionOf(option: Option): CompletionKind | undefined {
  return optionKinds.get(option);
}

export function keysOf(option: Option): KeyedOption | undefined {
  return optionKeys.get(option);
}

export interface CommandSpec {
  /** `add` with its arguments: `add <name>`. */
  readonly usage: string;
  readonly aliases?: readonly string[];
  /** Heading in the help of the program. */
  readonly group?: string;
  readonly summary: string;
  readonly description?: string;
  /** Paragraphs of the manual page, after the description. */
  readonly explanation?: readonly string[];
  readonly arguments?: Readonly<Record<string, string>>;
  readonly completeArguments?: readonly CompletionKind[];
  readonly examples?: readonly string[];
  readonly notes?: readonly string[];
  readonly options?: readonly OptionMaker[];
  /** Long names of the options that `--help` shows (default: all). */
  readonly essentials?: readonly string[];
  readonly isHidden?: boolean;
}

/** Returns a program without commands. It accepts only commands that the context wants. */
export function createProgram(
  { only }: Pick<Context, 'only'>,
  name: string,
  description: string,
): Command {
  // --help-all after a command belongs to that command.
  const program = new Command(name).description(description).enablePositionalOptions();
  if (only !== null) wantedCommands.set(program, only);
  return program;
}

/** Sets the notes after the help of a program. */
export function describeProgram(program: Command, notes: readonly string[]): void {
  extras.set(program, { ...NO_EXTRAS, notes });
}

/** Adds a subcommand to a program. Every command has `--debug` and `--help-all`. */
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
  if (spec.group !== undefined) command.helpGroup(spec.group);
  for (const { make } of spec.options ?? []) command.addOption(make());
  command.addOption(new Option('--debug', 'Show the stack trace of an error').helpGroup('Other:'));
  command.addHelpOption(new Option('-h, --help', 'Show this help').helpGroup('Other:'));
  command.allowExcessArguments(false);
  const { completeArguments, examples, notes, explanation, essentials } = { ...NO_EXTRAS, ...spec };
  extras.set(command, { completeArguments, examples, notes, explanation, essentials });
  return command;
}

/** Placeholder for an unwanted command. */
const NOT_MADE: Pick<Command, 'action'> = { action: () => new Command() };

export interface OptionSpec {
  readonly group?: string;
  readonly choices?: readonly string[];
  readonly complete?: CompletionKind;
  /** Known keys of the value: for completion and for `OPTION help`. */
  readonly keys?: KeyedOption;
  /** The option may be given several times and is a list. */
  readonly isRepeatable?: boolean;
  /** The command is refused without the option. */
  readonly isMandatory?: boolean;
  readonly isHidden?: boolean;
}

/** Creates an option together with its command: most commands of a program are never created. */
function laterOption(flags: string, make: () => Option) {
  return {
    /** `--os-image`; undefined for an option of one letter. */
    long: /--[a-z-]+/.exec(flags)?.[0],
    make,
  };
}

export type OptionMaker = ReturnType<typeof laterOption>;

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
  if (spec.keys) optionKeys.set(made, spec.keys);
  return made;
}

/** Returns a yes/no option, in Ganeti's spelling. Its value is a boolean. */
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

/** Returns an option whose value is a whole number of at least `minimum`. */
export function wholeNumber(
  flags: string,
  description: string,
  spec: OptionSpec & { readonly minimum?: number; readonly maximum?: number } = {},
): OptionMaker {
  const { minimum = 0, maximum = Infinity } = spec;
  const range = maximum === Infinity ? `of ${minimum} or more` : `from ${minimum} to ${maximum}`;
  return laterOption(flags, () =>
    makeOption(flags, description, spec).argParser((value) => {
      const isNumber = /^\d{1,15}$/.test(value);
      if (isNumber && Number(value) >= minimum && Number(value) <= maximum) return Number(value);
      throw new InvalidArgumentError(`Write a whole number ${range}`);
    }),
  );
}

export const jsonOption = (): OptionMaker => option('--json', 'Print JSON', { group: 'Output:' });

/**
 * Returns the options of every command that submits a job. Scripts for Ganeti use the hidden ones.
 */
export function jobOptions(): readonly OptionMaker[] {
  const group = 'Job:';
  return [
    option('--submit', 'Print the id of the job and do not wait', { group }),
    option('--dry-run', 'Check everything, change nothing', { group }),
    option('--json', 'Print the finished job as JSON; with --submit {"id":N}', { group }),
    option('--print-jobid', 'Print the id of the job first', { isHidden: true }),
    option('--priority <priority>', 'No effect, as jobs have no priority', {
      isHidden: true,
      choices: ['low', 'normal', 'high'],
    }),
  ];
}
