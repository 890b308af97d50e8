import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';

export interface ChannelCommandsOptions {
  /** A folder per installation is made in it. */
  readonly dir: string;
  readonly root: string;
  /** The program that speaks to noded for a script: Node, its options, cluster-cli/main.ts. */
  readonly command: readonly string[];
}

/**
 * Puts `gnt-channel` in a folder for the PATH of one instance's host script: the script's
 * environment is Ganeti's and nothing else, so the command itself knows its instance and its node.
 * @returns the folder, and what removes it
 */
export async function createChannelCommands(
  options: ChannelCommandsOptions,
  instanceName: string,
  uuid: string,
): Promise<{ dir: string; remove: () => Promise<void> }> {
  const dir = join(options.dir, uuid);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const words = options.command.map(quoteForShell).join(' ');
  // It runs without the script's environment: OSP_* are for that process alone.
  const environment = `GNT_ROOT=${quoteForShell(options.root)} GNT_PROGRAM=gnt-channel`;
  const script = `#!/bin/sh\nexec /usr/bin/env -i ${environment} ${words} "$@" ${quoteForShell(instanceName)}\n`;
  const path = join(dir, 'gnt-channel');
  await writeFile(path, script);
  await chmod(path, 0o700);
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** Removes what a daemon left that was killed. */
export async function sweepChannelCommands(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true });
}
