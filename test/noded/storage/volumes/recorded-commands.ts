import { CommandFailed } from '#shared/process/run.ts';
import type { BoundCommands } from '../../../../noded/storage/drivers/volumes/bound-commands.ts';

/** The commands of a volume system that were asked for, with the answers of a test. */
export interface RecordedCommands {
  readonly commands: BoundCommands;
  /** `read` or `change`, then the command. */
  readonly lines: string[];
}

/** @param answers by the start of the command; others answer nothing */
export function recordCommands(
  answers: Readonly<Record<string, string | CommandFailed>> = {},
): RecordedCommands {
  const lines: string[] = [];
  const answer = async (kind: string, command: string, args: readonly string[]) => {
    const line = [command, ...args].join(' ');
    lines.push(`${kind} ${line}`);
    const key = Object.keys(answers).find((start) => line.startsWith(start));
    const found = key === undefined ? '' : (answers[key] ?? '');
    if (found instanceof CommandFailed) throw found;
    return found;
  };
  return {
    lines,
    commands: {
      read: (command, args) => answer('read', command, args),
      change: async (command, args, how) => {
        const options = how === undefined ? '' : ` ${JSON.stringify(how)}`;
        return answer(`change${options}`, command, args);
      },
    },
  };
}

export function commandFailed(stderr: string, exitStatus = 5): CommandFailed {
  return new CommandFailed('it failed', {
    ...{ command: 'sh', args: [], exitStatus, stderr, cause: null },
  });
}
