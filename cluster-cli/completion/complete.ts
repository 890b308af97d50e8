import type { Command, Option } from 'commander';
import { completeKeys } from './complete-keys.ts';
import { type CompletionKind, completionOf, extrasOf, keysOf } from './command.ts';

/** Candidates at the cursor. */
export type Completion =
  | { readonly kind: 'words'; readonly words: readonly CompletionWord[] }
  /** Names that only the daemon knows; `prefix` precedes them in the same word (`--os-type=`). */
  | { readonly kind: CompletionKind; readonly prefix: string };

export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

/**
 * Completes a command line from the command tree alone.
 * @param words the words after the program's name; the last one is at the cursor and may be empty
 */
export function complete(program: Command, words: readonly string[]): Completion {
  const [name = '', ...rest] = words;
  if (rest.length === 0) return { kind: 'words', words: startingWith(commandWords(program), name) };
  const command = program.commands.find(
    (each) => each.name() === name || each.aliases().includes(name),
  );
  if (!command) return { kind: 'words', words: [] };
  return completeInCommand(command, rest);
}

function commandWords(program: Command): readonly CompletionWord[] {
  return visibleCommands(program).map((command) => ({
    word: command.name(),
    description: command.summary(),
  }));
}

function visibleCommands(program: Command): readonly Command[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((each) => each.name() !== 'help');
}

function completeInCommand(command: Command, words: readonly string[]): Completion {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const end = before.indexOf('--');
  if (end === -1) {
    const attached = /^(--[^=]+)=(.*)$/s.exec(current);
    const attachedOption = attached && findOption(command, attached[1] ?? '');
    if (attached && attachedOption) {
      return completeValue(attachedOption, attached[2] ?? '', `${attached[1]}=`);
    }
    const last = before.at(-1);
    const pending = last === undefined ? undefined : findOption(command, last);
    if (pending?.required) return completeValue(pending, current, '');
    if (current.startsWith('-')) {
      return { kind: 'words', words: startingWith(optionWords(command), current) };
    }
  }
  return completeArgument(command, before);
}

function completeValue(option: Option, current: string, prefix: string): Completion {
  const kind = completionOf(option);
  const file = /^@/.test(current);
  if (file) return { kind: 'file', prefix: `${prefix}@` };
  if (kind) return { kind, prefix };
  const keyed = keysOf(option);
  if (keyed) return { kind: 'words', words: completeKeys(keyed, current, prefix) };
  const choices = option.argChoices ?? (/yes\|no/.test(option.flags) ? ['yes', 'no'] : []);
  const words = choices.map((choice) => ({ word: `${prefix}${choice}`, description: '' }));
  return { kind: 'words', words: startingWith(words, `${prefix}${current}`) };
}

function completeArgument(command: Command, before: readonly string[]): Completion {
  const kinds = extrasOf(command).completeArguments;
  const position = countArguments(command, before);
  const declared = command.registeredArguments;
  const isVariadic = declared.at(-1)?.variadic ?? false;
  if (position >= declared.length && !isVariadic) return { kind: 'words', words: [] };
  const kind = kinds[position] ?? (isVariadic ? kinds.at(-1) : undefined);
  return kind ? { kind, prefix: '' } : { kind: 'words', words: [] };
}

function countArguments(command: Command, words: readonly string[]): number {
  let count = 0;
  let areOptionsOver = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (areOptionsOver || !word.startsWith('-') || word === '-') count += 1;
    else if (word === '--') areOptionsOver = true;
    else if (!word.includes('=') && findOption(command, word)?.required) at += 1;
  }
  return count;
}

function optionWords(command: Command): readonly CompletionWord[] {
  const options = command.createHelp().visibleOptions(command);
  return options.flatMap(({ long, description }) => (long ? [{ word: long, description }] : []));
}

function findOption(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => long === flag || short === flag);
}

function startingWith(words: readonly CompletionWord[], start: string): readonly CompletionWord[] {
  return words.filter(({ word }) => word.startsWith(start));
}
