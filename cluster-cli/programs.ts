import type { Command } from 'commander';
import type { Context } from './terminal/context.ts';

/** Each program loads only its own commands. */
export const programs = {
  'gnt-instance': async (context: Context): Promise<Command> =>
    (await import('./commands/instance/instance-program.ts')).createInstanceProgram(context),
  'gnt-backup': async (context: Context): Promise<Command> =>
    (await import('./commands/backup/backup-program.ts')).createBackupProgram(context),
  'gnt-image': async (context: Context): Promise<Command> =>
    (await import('./commands/image/image-program.ts')).createImageProgram(context),
  'gnt-os': async (context: Context): Promise<Command> =>
    (await import('./commands/os/os-program.ts')).createOsProgram(context),
  'gnt-cluster': async (context: Context): Promise<Command> =>
    (await import('./commands/cluster/cluster-program.ts')).createClusterProgram(context),
  'gnt-node': async (context: Context): Promise<Command> =>
    (await import('./commands/node/node-program.ts')).createNodeProgram(context),
  'gnt-job': async (context: Context): Promise<Command> =>
    (await import('./commands/job/job-program.ts')).createJobProgram(context),
  'gnt-profile': async (context: Context): Promise<Command> =>
    (await import('./commands/profile/profile-program.ts')).createProfileProgram(context),
  'gnt-network': async (context: Context): Promise<Command> =>
    (await import('./commands/network/network-program.ts')).createNetworkProgram(context),
  'gnt-bootenv': async (context: Context): Promise<Command> =>
    (await import('./commands/bootenv/bootenv-program.ts')).createBootEnvProgram(context),
  'gnt-group': async (context: Context): Promise<Command> =>
    (await import('./commands/group/group-program.ts')).createGroupProgram(context),
  'gnt-debug': async (context: Context): Promise<Command> =>
    (await import('./commands/debug/debug-program.ts')).createDebugProgram(context),
  'gnt-channel': async (context: Context): Promise<Command> =>
    (await import('./commands/channel/channel-program.ts')).createChannelProgram(context),
} as const;

export type ProgramName = keyof typeof programs;

export function isProgramName(name: string): name is ProgramName {
  return Object.hasOwn(programs, name);
}
