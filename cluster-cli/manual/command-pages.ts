import type { Argument, Command, Option } from 'commander';
import { ownValue } from '#shared/json/own-value.ts';
import { absentCommands } from '../help/absent-commands.ts';
import { extrasOf, keysOf } from '../completion/command.ts';
import { formatExample } from '../help/layout.ts';
import { keyTerms } from './key-terms.ts';
import { asSentence } from './sentence.ts';
import { type Block, code, heading, type Page, paragraph, terms } from './page.ts';

const EXIT_STATUSES = [
  ['0', 'The operation is done.'],
  ['1', 'The operation failed after it had started.'],
  ['2', 'The operation was refused. Nothing was changed.'],
  ['3', 'The command cannot connect to gnt-noded.'],
  ['130', 'The command was interrupted.'],
] as const;

const ENVIRONMENT = [
  ['GNT_ROOT', 'Prefix of every path. The default is `/`.'],
  ['NO_COLOR', 'Disables colours when it is not empty.'],
] as const;

export function commandsOf(program: Command): readonly Command[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((each) => each.name() !== 'help');
}

/** Returns the page of a program: its commands and their common parts. */
export function programPage(
  program: Command,
  statuses: readonly (readonly [string, string])[] = EXIT_STATUSES,
): Page {
  const commands = commandsOf(program);
  return {
    name: program.name(),
    section: 8,
    purpose: purposeOf(program.description()),
    blocks: [
      heading('Synopsis'),
      code(synopsisOf(program)),
      heading('Description'),
      paragraph(program.description()),
      ...describeOptions(program, program.name()),
      ...(commands.length === 0 ? [] : [heading('Commands'), ...listCommands(commands)]),
      ...describeExtras(program),
      ...describeAbsences(program.name()),
      heading('Exit status'),
      terms(statuses),
      heading('Environment'),
      terms(ENVIRONMENT),
    ],
    seeAlso: ['gnt(7)', ...commands.map((each) => `${program.name()}-${each.name()}(8)`)],
  };
}

export function commandPage(program: Command, command: Command): Page {
  return {
    name: `${program.name()}-${command.name()}`,
    section: 8,
    purpose: purposeOf(command.summary() || command.description()),
    blocks: [
      heading('Synopsis'),
      code(`${program.name()} ${synopsisOf(command)}`),
      heading('Description'),
      ...describeCommand(command),
      ...describeKeys(command),
    ],
    seeAlso: [`${program.name()}(8)`, 'gnt(7)'],
  };
}

/** Describes a command: aliases, arguments, options by group, notes and examples. */
export function describeCommand(command: Command): readonly Block[] {
  const aliases = command.aliases();
  const told = command.registeredArguments.filter((each) => each.description !== '');
  return [
    paragraph(command.description()),
    ...extrasOf(command).explanation.map(paragraph),
    ...(aliases.length === 0 ? [] : [paragraph(`Aliases: ${aliases.map(asCode).join(', ')}.`)]),
    ...(told.length === 0
      ? []
      : [heading('Arguments'), terms(told.map((each) => [each.name(), each.description]))]),
    ...describeOptions(command, command.name()),
    ...describeExtras(command),
  ];
}

/** Returns `add [options] <name>`, for the synopsis. */
export function synopsisOf(command: Command): string {
  const parts = [
    command.name(),
    ...(command.options.length > 0 ? ['[options]'] : []),
    ...(commandsOf(command).length > 0 ? ['<command>', '[arguments]'] : []),
    ...command.registeredArguments.map(formatArgument),
  ];
  return parts.join(' ');
}

function listCommands(commands: readonly Command[]): readonly Block[] {
  const groups = Map.groupBy(commands, (each) => each.helpGroup() ?? '');
  return [...groups].flatMap(([group, members]) => [
    ...(group === '' ? [] : [heading(group.replace(/:$/, ''), 2)]),
    terms(members.map((each) => [each.name(), asSentence(each.summary() || each.description())])),
  ]);
}

function describeOptions(command: Command, name: string): readonly Block[] {
  const options = command.createHelp().visibleOptions(command);
  if (options.length === 0) return [];
  const groups = Map.groupBy(options, (each) => each.helpGroupHeading ?? 'Options:');
  if (groups.size === 1) return [heading('Options'), listOptions(options)];
  return [...groups].flatMap(([group, members], index) => [
    ...(index === 0 ? [heading('Options')] : []),
    heading(group.replace(/:$/, '').replace(/^Options$/, `Options of ${name}`), 2),
    listOptions(members),
  ]);
}

function listOptions(options: readonly Option[]): Block {
  return terms(options.map((option) => [option.flags, describeOption(option)]));
}

function describeOption({ description, argChoices, defaultValue }: Option): string {
  const choices = argChoices ? ` One of ${argChoices.map(asCode).join(', ')}.` : '';
  const shown = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  return `${asSentence(description)}${choices}${shown ? ` Default: \`${defaultValue}\`.` : ''}`;
}

/** Describes the keys of options with lists. */
function describeKeys(command: Command): readonly Block[] {
  return command.options.flatMap((option) => {
    const keyed = keysOf(option);
    if (keyed === undefined || option.hidden) return [];
    return [
      heading(`Keys of ${option.long ?? option.flags}`),
      paragraph(`Syntax: \`${keyed.syntax}\`.`),
      keyTerms(keyed.keys),
    ];
  });
}

function describeExtras(command: Command): readonly Block[] {
  const { notes, examples } = extrasOf(command);
  return [
    ...(notes.length === 0 ? [] : [heading('Notes'), ...notes.map(paragraph)]),
    ...(examples.length === 0
      ? []
      : [heading('Examples'), code(examples.map(breakExample).join('\n'))]),
  ];
}

/** Lists the commands of Ganeti that do not exist. */
function describeAbsences(program: string): readonly Block[] {
  const absences = Object.entries(ownValue(absentCommands, program) ?? {});
  if (absences.length === 0) return [];
  return [
    heading('Commands of Ganeti that do not exist'),
    terms(
      absences.map(([verb, [reason, alternative]]) => [
        verb,
        `${asSentence(reason)} ${asSentence(alternative)}`,
      ]),
    ),
  ];
}

/** Fits a terminal of 80 columns with the indent of a manual page. */
const EXAMPLE_COLUMNS = 72;

/** Returns the lines of an example, without the indent of help. */
function breakExample(example: string): string {
  return formatExample(example, EXAMPLE_COLUMNS)
    .map((line) => line.replace(/^ {2}/, ''))
    .join('\n');
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function purposeOf(text: string): string {
  return text.split(/[.:;] /)[0]?.replace(/\.$/, '') ?? text;
}

function asCode(text: string): string {
  return `\`${text}\``;
}
