import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';

export interface ChannelCommandsOptions {
  /** Holds one folder per installation. */
  readonly dir: string;
  readonly root: string;
  /** Node, its options and cluster-cli/main.ts. */
  readonly command: readonly string[];
}

/**
 * Writes `gnt-channel` into a folder for the PATH of one instance's host script. The script's
 * environment has Ganeti's variables only, so the command names its instance and node itself.
 * @returns the folder, and a function that removes it
 */
export async function createChannelCommands(
  options: ChannelCommandsOptions,
  instanceName: string,
  uuid: string,
): Promise<{ dir: string; remove: () => Promise<void> }> {
  const dir = join(options.dir, uuid);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const words = options.command.map(quoteForShell).join(' ');
  // `env -i`: OSP_* may hold secrets and are for the script alone.
  const environment = `GNT_ROOT=${quoteForShell(options.root)} GNT_PROGRAM=gnt-channel`;
  const script = `#!/bin/sh\nexec /usr/bin/env -i ${environment} ${words} "$@" ${quoteForShell(instanceName)}\n`;
  const path = join(dir, 'gnt-channel');
  await writeFile(path, script);
  await chmod(path, 0o700);
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** Removes the folders of a killed daemon. */
export async function sweepChannelCommands(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true });
}
