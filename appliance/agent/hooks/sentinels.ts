import { AppError } from '#shared/errors/app-error.ts';
import type { InstallationFacts } from '#shared/contract/hook-book.ts';
import { RootFiles } from './root-files.ts';

/** Folder where Kairos tells steps how it was booted. */
const FOLDER = '/run/cos';
/** A step that creates this file ends a Kairos installation before the disk is written. */
const FAILURE = `${FOLDER}/fail_installation`;
const ROOT = { uid: 0, gid: 0 };

export interface Sentinels {
  /** Creates the files in the appliance's system once: a step may remove them. */
  raise(rootPath: string): Promise<void>;
  /** @throws AppError HOOK_FAILED when a step requested the end */
  requireNoFailure(rootPath: string): void;
}

/**
 * The files by which Kairos' steps detect their surroundings. The appliance is a live system, and
 * its reinstallation corresponds to a reset by Kairos' recovery system.
 */
export function createSentinels({ points }: Pick<InstallationFacts, 'points'>): Sentinels {
  const names = ['live_mode', ...(points.includes('before-reset') ? ['recovery_mode'] : [])];
  let areRaised = false;
  return {
    async raise(rootPath) {
      if (areRaised) return;
      const files = new RootFiles(rootPath);
      files.makeDirectory(FOLDER, { ...ROOT, mode: 0o755 });
      for (const name of names)
        await files.write(`${FOLDER}/${name}`, '', { ...ROOT, mode: 0o644 });
      areRaised = true;
    },
    requireNoFailure(rootPath) {
      if (new RootFiles(rootPath).exists(FAILURE))
        throw new AppError('HOOK_FAILED', `a step created ${FAILURE}, so the installation stopped`);
    },
  };
}
