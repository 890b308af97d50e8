import { type Command, Help, type HelpConfiguration } from 'commander';
import { extrasOf } from '../completion/command.ts';

/** Maximum share of a line for terms. A longer term has a line of its own. */
const MAX_TERM_SHARE = 0.35;
const INDENT = '  ';
/** Options of every command. */
const OTHER_GROUP = 'Other:';

/** Commands whose help shows all options, because of `--help-all`. */
const shownWhole = new WeakSet<Command>();

/** Makes the next help of a command show every option, and of a program every command. */
export function showWhole(command: Command): void {
  shownWhole.add(command);
}

/** Counts the options that only `--help-all` shows. */
export function countAdvanced(command: Command): number {
  const { essentials } = extrasOf(command);
  if (essentials === null) return 0;
  return command.options.filter((option) => !option.hidden && !isEssential(option, essentials))
    .length;
}

function isEssential(
  { long, helpGroupHeading }: { readonly long?: string; readonly helpGroupHeading?: string },
  essentials: readonly string[],
): boolean {
  return helpGroupHeading === OTHER_GROUP || (long !== undefined && essentials.includes(long));
}

/**
 * Returns a layout of help without lines wider than the terminal. Long terms have lines of their
 * own. Commander's own layout leaves text unwrapped beside a long term.
 */
export function layoutHelp(columns: number): HelpConfiguration {
  return {
    sortSubcommands: false,
    showGlobalOptions: false,
    helpWidth: columns,
    boxWrap: (text, width) => wrapText(text, width).join('\n'),
    commandUsage(command) {
      const usage = Help.prototype.commandUsage.call(this, command);
      return wrapText(usage, columns - USAGE.length).join(`\n${' '.repeat(USAGE.length)}`);
    },
    subcommandTerm: (command) => [command.name(), ...command.aliases()].join(', '),
    optionDescription: ({ description, argChoices }) =>
      argChoices === undefined ? description : `${description} (${argChoices.join('|')})`,
    formatItem(term, termWidth, description) {
      const column = Math.min(termWidth + 4, Math.floor(columns * MAX_TERM_SHARE));
      return formatItem(`${INDENT}${term}`, description, { column, columns }).join('\n');
    },
    formatHelp(command, helper) {
      // Hides options in help only; completion and manual pages read all of them.
      const chosen = Object.create(helper, {
        visibleOptions: { value: (of: Command) => chooseOptions(of, helper) },
        visibleCommands: { value: (of: Command) => chooseCommands(of, helper) },
      }) as Help;
      return Help.prototype.formatHelp.call(chosen, command, chosen);
    },
  };
}

const USAGE = 'Usage: ';

function chooseOptions(command: Command, helper: Help): ReturnType<Help['visibleOptions']> {
  const { essentials } = extrasOf(command);
  const all = helper.visibleOptions(command);
  if (essentials === null || shownWhole.has(command)) return all;
  return all.filter((option) => isEssential(option, essentials));
}

function chooseCommands(command: Command, helper: Help): Command[] {
  const visible = helper.visibleCommands(command).filter((each) => each.name() !== 'help');
  return shownWhole.has(command) ? [...command.commands] : visible;
}

interface Columns {
  /** First column of descriptions. */
  readonly column: number;
  readonly columns: number;
}

function formatItem(lead: string, description: string, { column, columns }: Columns): string[] {
  if (description === '') return [lead];
  const [first = '', ...rest] = wrapText(description, columns - column);
  const pad = ' '.repeat(column);
  const lines = rest.map((line) => `${pad}${line}`);
  return lead.length + INDENT.length <= column
    ? [`${lead.padEnd(column)}${first}`, ...lines]
    : [lead, `${pad}${first}`, ...lines];
}

/** Formats a table of terms and descriptions. */
export function formatItems(
  items: readonly (readonly [term: string, description: string])[],
  columns: number,
): readonly string[] {
  const longest = Math.max(0, ...items.map(([term]) => term.length));
  const column = Math.min(longest + 4, Math.floor(columns * MAX_TERM_SHARE));
  return items.flatMap(([term, description]) =>
    formatItem(`${INDENT}${term}`, description, { column, columns }),
  );
}

/**
 * Breaks text at spaces into lines of at most `width` characters. A longer word has its own line.
 */
export function wrapText(text: string, width: number): readonly string[] {
  return text.split('\n').flatMap((line) => fill(line.split(/ +/), width, ' '));
}

function fill(words: readonly string[], width: number, between: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of words) {
    const longer = line === '' ? word : `${line}${between}${word}`;
    if (longer.length > width && line !== '') {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

/** Formats notes and examples of a command, after its options. */
export function formatExtras(command: Command, columns: number): string {
  const { notes, examples } = extrasOf(command);
  const shown = notes.flatMap((note) => ['', ...wrapText(note, columns)]);
  if (examples.length > 0)
    shown.push('', 'Examples:', ...examples.flatMap((example) => formatExample(example, columns)));
  return shown.join('\n');
}

/** Breaks a shell command into lines that can be pasted. */
export function formatExample(example: string, columns: number): readonly string[] {
  const words = example.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  const lines = fill(words, columns - 2 * INDENT.length - ' \\'.length, ' ');
  return lines.map((line, at) => {
    const indent = at === 0 ? INDENT : `${INDENT}${INDENT}`;
    return `${indent}${line}${at === lines.length - 1 ? '' : ' \\'}`;
  });
}
