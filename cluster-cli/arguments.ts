import type { Command, Option } from 'commander';
import { COMPLETION_WORDS } from './completion/completion-words.ts';

const DEFAULT_WAIT_READY_S = 600;

/**
 * Inserts the default of `--wait-ready`, whose value must follow `=`: in `--wait-ready NAME` the
 * name is the instance's.
 */
export function expandArguments(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return argv.map((argument, at) =>
    argument === '--wait-ready' && (end === -1 || at < end)
      ? `--wait-ready=${DEFAULT_WAIT_READY_S}`
      : argument,
  );
}

/**
 * Ends our options at the first word of a command for a guest or node (`ssh web1 ls -l`), as ssh
 * does.
 */
export function endOptionsAtCommand(argv: readonly string[], root: Command): readonly string[] {
  const command = root.commands.find((each) => each.name() === argv[0]);
  const parameters = command?.registeredArguments ?? [];
  if (!command || parameters.length > 2 || parameters.at(-1)?.name() !== 'command') return argv;
  const options = [...command.options, ...root.options];
  let isNamed = parameters.length === 1;
  for (let at = 1; at < argv.length; at++) {
    const word = argv[at] ?? '';
    if (word === '--') return argv;
    if (word.startsWith('-')) {
      if (isValueNext(word, options)) at++;
    } else if (isNamed) {
      return [...argv.slice(0, at), '--', ...argv.slice(at)];
    } else {
      isNamed = true;
    }
  }
  return argv;
}

/**
 * Tells whether an option takes the next word: `-l` and `-Al` do, `-lroot` and `--login-name=root`
 * do not.
 */
function isValueNext(word: string, options: readonly Option[]): boolean {
  if (word.startsWith('--')) return options.some(({ long, required }) => long === word && required);
  const letters = [...word.slice(1)];
  const first = letters.findIndex((letter) =>
    options.some(({ short, required }) => short === `-${letter}` && required),
  );
  return first !== -1 && first === letters.length - 1;
}

const SENSITIVE = /^(--os-parameters-(secret|private)|--personalization-password|--store)(=|$)/;

/** Tells whether the arguments may contain a secret value. */
export function hasSensitiveArguments(argv: readonly string[]): boolean {
  return argv.some((argument) => SENSITIVE.test(argument));
}

/**
 * Returns the commands that the arguments need; null: all. Shell completion also needs the
 * completed command.
 */
export function wantedCommands(argv: readonly string[]): readonly string[] | null {
  const [word] = argv;
  if (word === undefined || word.startsWith('-') || word === 'help' || word === 'man') return null;
  if (word !== COMPLETION_WORDS) return [word];
  const end = argv.indexOf('--');
  const [completed, ...more] = argv.slice(end + 1);
  return end === -1 || completed === undefined || more.length === 0
    ? null
    : [COMPLETION_WORDS, completed];
}
