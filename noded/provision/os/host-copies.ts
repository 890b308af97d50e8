import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { LaunchProgram } from '#shared/process/launch.ts';
import { copyDefinition } from './definition-content.ts';
import { loadDefinition } from './load-definition.ts';
import type { OsDefinition } from './os-definition.ts';

/**
 * A copy of a trusted definition for the host, in a folder that only root can enter. Disposing of
 * it removes the folder.
 */
export interface HostCopy extends AsyncDisposable {
  readonly definition: OsDefinition;
  /** Returns the path in the copy of a script of the original. */
  pathOf(script: string): string;
  readonly launch: LaunchProgram;
}

/**
 * Copies trusted definitions. Host scripts run from a copy, because its digest covers exactly the
 * bytes that run.
 * @param dir used for nothing else, on a file system that allows executables (/run often does not)
 * @param launch starts the scripts of copies
 */
export function createHostCopies(dir: string, launch: LaunchProgram) {
  return {
    /**
     * Copies a definition.
     * @throws AppError OS_NOT_TRUSTED when its digest is no longer this one, OS_INVALID
     */
    make: async (definition: OsDefinition, digest: string): Promise<HostCopy> => {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await using undo = new AsyncDisposableStack();
      const place = await mkdtemp(join(dir, 'copy-'));
      undo.defer(() => rm(place, { recursive: true, force: true }));
      // loadDefinition takes a definition's name from its folder.
      const path = join(place, definition.name);
      await mkdir(path, { mode: 0o755 });
      if ((await copyDefinition(definition.path, path)) !== digest) throw changed(definition);
      const copied = await loadDefinition(path);
      const held = undo.move();
      return {
        definition: copied,
        launch,
        pathOf: (script) => join(path, relative(definition.path, script)),
        [Symbol.asyncDispose]: () => held.disposeAsync(),
      };
    },
    /** Removes the copies of a killed daemon. */
    sweep: (): Promise<void> => rm(dir, { recursive: true, force: true }),
  };
}

export type HostCopies = ReturnType<typeof createHostCopies>;

function changed({ name, path }: OsDefinition): AppError {
  return new AppError('OS_NOT_TRUSTED', `OS '${name}' changed after this operation began`, {
    details: { os: name, path },
    hint: `Show why it is not trusted: gnt-os info ${name}`,
  });
}
