import { AppError } from '#shared/errors/app-error.ts';
import type { InstallationFacts } from '#shared/contract/hook-book.ts';
import { RootFiles } from './root-files.ts';

/** Where Kairos tells steps how it was booted. */
const FOLDER = '/run/cos';
/** A step that leaves this ends a Kairos installation before anything is written. */
const FAILURE = `${FOLDER}/fail_installation`;
const ROOT = { uid: 0, gid: 0 };

export interface Sentinels {
  /** Makes them in the appliance's system, once: a step may take them away. */
  raise(rootPath: string): Promise<void>;
  /** @throws AppError HOOK_FAILED when a step asked for the end */
  requireNoFailure(rootPath: string): void;
}

/**
 * The files by which steps for Kairos know where they run: the appliance is a live system, and what
 * it does in a reinstallation is what Kairos' recovery system does in a reset.
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
