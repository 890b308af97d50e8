import { Command, InvalidArgumentError, Option } from 'commander';

/** How an argument or option value is completed in a shell. */
export type CompletionKind =
  'instance' | 'os' | 'job' | 'node' | 'image' | 'catalogue' | 'profile' | 'bootenv' | 'file';

/** What shell completion and manual pages need and commander does not hold. */
export interface CommandExtras {
  readonly completeArguments: readonly CompletionKind[];
  readonly examples: readonly string[];
  readonly notes: readonly string[];
}

const extras = new WeakMap<Command, CommandExtras>();
const optionKinds = new WeakMap<Option, CompletionKind>();
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
  readonly options?: readonly Option[];
  readonly isHidden?: boolean;
}

/** Adds a subcommand to a program. Every command takes `--debug`. */
export function addCommand(program: Command, spec: CommandSpec): Command {
  const [name = '', ...parameters] = spec.usage.split(' ');
  const command = program.command(name, { hidden: spec.isHidden ?? false });
  for (const parameter of parameters) {
    const key = parameter.replaceAll(/[<>[\].]/g, '');
    command.argument(parameter, spec.arguments?.[key] ?? '');
  }
  command.aliases([...(spec.aliases ?? [])]);
  command.summary(spec.summary).description(spec.description ?? `${spec.summary}.`);
  for (const option of spec.options ?? []) command.addOption(option);
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
  readonly isHidden?: boolean;
}

export function option(flags: string, description: string, spec: OptionSpec = {}): Option {
  const made = new Option(flags, description);
  if (spec.choices) made.choices([...spec.choices]);
  if (spec.group) made.helpGroup(spec.group);
  if (spec.isHidden) made.hideHelp();
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
export function yesNo(flags: string, description: string, group?: string): Option {
  return option(flags, description, group === undefined ? {} : { group }).argParser((value) => {
    const lower = value.toLowerCase();
    if (lower === 'yes' || lower === 'true') return true;
    if (lower === 'no' || lower === 'false') return false;
    throw new InvalidArgumentError(`Invalid boolean value '${value}', write yes or no`);
  });
}

/** An option whose value is a whole number from `minimum` on. */
export function wholeNumber(
  flags: string,
  description: string,
  spec: OptionSpec & { readonly minimum?: number } = {},
): Option {
  const minimum = spec.minimum ?? 0;
  return option(flags, description, spec).argParser((value) => {
    if (/^\d{1,15}$/.test(value) && Number(value) >= minimum) return Number(value);
    throw new InvalidArgumentError(`write a whole number of ${minimum} or more`);
  });
}

export const jsonOption = (): Option => option('--json', 'print JSON').helpGroup('Output:');

/** Options of every command that makes a job. */
export function jobOptions(): readonly Option[] {
  const group = 'Job:';
  return [
    option('--submit', 'print the id of the job and do not wait for it', { group }),
    option('--dry-run', 'check everything, change nothing', { group }),
    option('--json', 'print the finished job as JSON (with --submit: {"id":N})', { group }),
  ];
}
