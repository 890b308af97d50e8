import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { SYSTEM_PATH } from './system-path.ts';

export type HostCommands = Readonly<Record<string, string>>;

/** Needed by every build of the appliance. */
export const BUILD_COMMANDS = {
  mksquashfs: 'squashfs-tools',
  strip: 'binutils',
  lz4: 'lz4',
} as const satisfies HostCommands;
/** Needed when the cache lacks the appliance's Debian. */
export const BASE_COMMANDS = { mmdebstrap: 'mmdebstrap' } as const satisfies HostCommands;

export interface MissingCommands {
  readonly commands: readonly string[];
  /** The command that installs them. */
  readonly remedy: string;
}

/** @returns null when the host has them all */
export async function findMissing(wanted: HostCommands): Promise<MissingCommands | null> {
  const missing: [command: string, debianPackage: string][] = [];
  for (const [command, debianPackage] of Object.entries(wanted))
    if (!(await isInPath(command))) missing.push([command, debianPackage]);
  if (missing.length === 0) return null;
  const packages = new Set(missing.map(([, debianPackage]) => debianPackage));
  return {
    commands: missing.map(([command]) => command),
    remedy: `apt-get install ${[...packages].join(' ')}`,
  };
}

async function isInPath(command: string): Promise<boolean> {
  for (const dir of SYSTEM_PATH.split(delimiter)) {
    try {
      await access(join(dir, command), constants.X_OK);
      return true;
    } catch {
      // Not in this folder.
    }
  }
  return false;
}
