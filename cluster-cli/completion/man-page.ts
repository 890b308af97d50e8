import type { Argument, Command, Option } from 'commander';
import { extrasOf } from './command.ts';

/**
 * A manual page in man(7) macros from the table of commands that `--help` shows.
 * @param date day of the page, `2026-11-21`
 */
export function renderManPage(program: Command, date: string): string {
  const commands = program
    .createHelp()
    .visibleCommands(program)
    .filter((each) => each.name() !== 'help');
  const lines = [
    `.TH ${program.name().toUpperCase()} 8 ${date} gnt "Cluster administration"`,
    '.SH NAME',
    `${escape(program.name())} \\- ${escape(firstSentence(program.description()))}`,
    '.SH SYNOPSIS',
    `.B ${escape(program.name())}`,
    '.I command',
    '[options] [arguments]',
    '.SH DESCRIPTION',
    escape(program.description()),
    '.SH COMMANDS',
    ...commands.flatMap(renderCommand),
    '.SH EXIT STATUS',
    ...exitStatuses.flatMap(([status, text]) => ['.TP', `.B ${status}`, text]),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => ['.TP', `.B ${name}`, text]),
  ];
  return `${lines.join('\n')}\n`;
}

const exitStatuses = [
  ['0', 'done'],
  ['1', 'the operation was tried and failed'],
  ['2', 'refused before anything changed: usage, validation, prerequisites'],
  ['3', 'the node daemon cannot be reached'],
  ['130', 'interrupted'],
] as const;

const environment = [
  ['GNT_ROOT', 'prefix of every path, / without it'],
  ['NO_COLOR', 'no colours when it is not empty'],
] as const;

function renderCommand(command: Command): readonly string[] {
  const { notes, examples } = extrasOf(command);
  const help = command.createHelp();
  const usage = command.registeredArguments.map(formatArgument).join(' ');
  const names = [command.name(), ...command.aliases()].join(', ');
  return [
    `.SS ${escape(names)}`,
    `.B ${escape(command.name())}`,
    escape(`[options] ${usage}`),
    '.PP',
    escape(command.description()),
    ...help.visibleOptions(command).flatMap(renderOption),
    ...notes.flatMap((note) => ['.PP', escape(note)]),
    ...(examples.length === 0 ? [] : ['.PP', 'Examples:', '.PP', '.nf', '.RS']),
    ...examples.flatMap((example) => escape(example).split('\n')),
    ...(examples.length === 0 ? [] : ['.RE', '.fi']),
  ];
}

function renderOption(option: Option): readonly string[] {
  const choices = option.argChoices ? ` (${option.argChoices.join(', ')})` : '';
  return ['.TP', `.B ${escape(option.flags)}`, escape(`${option.description}${choices}`)];
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? name : `[${name}]`;
}

function firstSentence(text: string): string {
  return text.split(/[.:] ?/)[0] ?? text;
}

/**
 * A backslash starts an escape, a hyphen is a minus, and a dot or quote at the start of a line is a
 * request.
 */
function escape(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1');
}
