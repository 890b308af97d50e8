import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram } from '../../completion/command.ts';

interface CommandGroup {
  /** Names and aliases of its commands. */
  readonly words: readonly string[];
  readonly load: () => Promise<(program: Command, context: Context) => void>;
}

/** In the order of the help. For a single command only its group is loaded. */
export const instanceCommands: readonly CommandGroup[] = [
  {
    words: ['launch', 'add', 'batch-create', 'reinstall', 'modify'],
    load: async () => (await import('./program-install.ts')).addInstallation,
  },
  {
    words: [
      ...['list', 'list-fields', 'info', 'show', 'hooks', 'log', 'list-tags', 'audit', 'metadata'],
    ],
    load: async () => (await import('./program-reading.ts')).addReading,
  },
  {
    words: [
      ...['remove', 'adopt', 'rename', 'add-tags', 'remove-tags', 'run', 'copy', 'grow-disk'],
      ...['startup', 'start', 'shutdown', 'stop', 'reboot', 'activate-disks', 'replace-token'],
    ],
    load: async () => (await import('./program-lifecycle.ts')).addLifecycle,
  },
  {
    words: ['console', 'connect', 'ssh', 'exec', 'push', 'pull', 'known-hosts', 'send', 'receive'],
    load: async () => (await import('./program-channel.ts')).addChannel,
  },
  {
    words: ['snapshot', 'list-snapshots', 'restore-snapshot', 'remove-snapshot'],
    load: async () => (await import('./program-snapshots.ts')).addSnapshots,
  },
  {
    words: ['move', 'migrate', 'failover'],
    load: async () => (await import('./program-move.ts')).addMove,
  },
];

/** Returns the command tree of gnt-instance. An action loads its own code when it runs. */
export async function createInstanceProgram(context: Context): Promise<Command> {
  const program = createProgram(
    context,
    'gnt-instance',
    'Create, install, show and control instances: virtual machines with a channel to their node.',
  );
  const { only } = context;
  for (const { words, load } of instanceCommands) {
    const isWanted = only === null || words.some((word) => only.includes(word));
    if (isWanted) (await load())(program, context);
  }
  return program;
}
