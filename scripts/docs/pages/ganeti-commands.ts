import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { absentCommands, findAbsence } from '../../../cluster-cli/help/absent-commands.ts';
import { type Block, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { asSentence } from '../../../cluster-cli/manual/sentence.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';
import {
  absentOptions,
  absentOptionsOf,
  differentCommands,
  differentOptions,
} from '../ganeti-notes.ts';

/** Commands of Ganeti 3.1.1, from the tables in its programs. */
const FACTS = join(import.meta.dirname, '../../../fixtures/ganeti/commands.json');

/** An option as `-o --output=`; the equals sign marks an option with a value. */
type Facts = Readonly<
  Record<
    string,
    Readonly<
      Record<string, { readonly aliases?: readonly string[]; readonly options: readonly string[] }>
    >
  >
>;

export interface ComparedCommand {
  readonly program: string;
  readonly name: string;
  /** Null: the command does not exist. */
  readonly command: Command | null;
  /** Names of options, as in `-o, --output`. */
  readonly same: readonly string[];
  readonly different: readonly string[];
  readonly absent: readonly string[];
}

/**
 * Compares Ganeti's commands with the commands of this package.
 * @throws Error naming a command or option without a note
 */
export function compareWithGaneti(programs: readonly Command[]): readonly ComparedCommand[] {
  // A file of this project.
  const facts = JSON.parse(readFileSync(FACTS, 'utf8')) as Facts;
  const compared = Object.entries(facts).flatMap(([program, commands]) =>
    Object.entries(commands).map(([name, { options }]) => {
      const own = programs.find((each) => each.name() === program);
      const command =
        own?.commands.find((each) => [each.name(), ...each.aliases()].includes(name)) ?? null;
      if ((command === null) !== (findAbsence(program, name) !== undefined))
        throw new Error(`cluster-cli/help/absent-commands.ts is wrong about ${program} ${name}`);
      return { program, name, command, ...compareOptions(command, options) };
    }),
  );
  for (const [program, verbs] of Object.entries(absentCommands))
    for (const verb of Object.keys(verbs))
      if (facts[program]?.[verb] === undefined)
        throw new Error(`Ganeti has no command ${program} ${verb}`);
  return compared;
}

function compareOptions(
  command: Command | null,
  options: readonly string[],
): Pick<ComparedCommand, 'same' | 'different' | 'absent'> {
  const compared = { same: [] as string[], different: [] as string[], absent: [] as string[] };
  if (command === null) return compared;
  for (const option of options) {
    const takesValue = option.endsWith('=');
    for (const name of option.replace('=', '').split(' ')) {
      if (name === '') continue;
      const own = command.options.find(({ short, long }) => short === name || long === name);
      if (own === undefined) compared.absent.push(name);
      else if (own.long !== undefined && Object.hasOwn(differentOptions, own.long))
        compared.different.push(name);
      else if ((own.required || own.optional) === takesValue) compared.same.push(name);
      else throw new Error(`${command.name()} ${name} takes a value only here or in Ganeti`);
    }
  }
  return compared;
}

export function ganetiCommandsPage(programs: readonly Command[]): DocumentedPage {
  const compared = compareWithGaneti(programs);
  return documented(
    'ganeti-commands.md',
    'Commands of Ganeti',
    {
      name: 'gnt-ganeti-commands',
      section: 7,
      purpose: 'commands and options of Ganeti 3.1, and their counterparts',
      blocks: [
        heading('Description'),
        paragraph(
          'This page compares all commands and options of Ganeti 3.1 with gnt. Same options have the same syntax.',
        ),
        ...[...Map.groupBy(compared, ({ program }) => program)].flatMap(describeProgram),
        heading('Absent options'),
        terms(describeAbsent(compared)),
      ],
    },
    false,
  );
}

function describeProgram([program, commands]: readonly [
  string,
  readonly ComparedCommand[],
]): readonly Block[] {
  return [heading(program), terms(commands.map((each) => [each.name, describeCommand(each)]))];
}

function describeCommand({ program, name, command, ...options }: ComparedCommand): string {
  const absence = findAbsence(program, name);
  if (command === null && absence !== undefined)
    return `Absent: ${absence[0]}. ${asSentence(absence[1])}`;
  const difference = differentCommands[`${program} ${name}`];
  const own = absentOptionsOf[`${program} ${name}`] ?? {};
  const list = (
    label: string,
    names: readonly string[],
    noteOf: (name: string) => string = () => '',
  ) =>
    names.length === 0
      ? []
      : [`${label}: ${names.map((each) => `\`${each}\`${noteOf(each)}`).join(', ')}.`];
  const inBrackets = (note: string | undefined): string => (note === undefined ? '' : ` (${note})`);
  return [
    difference === undefined ? 'Same.' : `Differs: ${difference}.`,
    ...list('Same options', options.same),
    ...list('Different options', options.different, (each) => inBrackets(differentOptions[each])),
    ...list('Absent options', options.absent, (each) => inBrackets(own[each])),
  ].join(' ');
}

/** Returns each absent option with its note. Short names have the notes of their long names. */
function describeAbsent(compared: readonly ComparedCommand[]): (readonly [string, string])[] {
  const absent = new Set(compared.flatMap((each) => each.absent));
  const long = [...absent].filter((name) => name.startsWith('--')).sort();
  for (const name of Object.keys(absentOptions))
    if (!absent.has(name))
      throw new Error(`scripts/docs/ganeti-notes.ts has ${name}, which exists`);
  return long.map((name) => {
    const note = absentOptions[name];
    if (note === undefined) throw new Error(`scripts/docs/ganeti-notes.ts lacks ${name}`);
    return [name, asSentence(note)] as const;
  });
}
