import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { LaunchProgram } from '#shared/process/run-in-group.ts';
import { copyDefinition } from './definition-content.ts';
import { loadDefinition } from './load-definition.ts';
import type { OsDefinition } from './os-definition.ts';

/**
 * A trusted definition as it runs on the host, in a folder that nobody but root can enter.
 * Disposing of it removes it.
 */
export interface HostCopy extends AsyncDisposable {
  readonly definition: OsDefinition;
  /** The path in the copy of a script of the original. */
  pathOf(script: string): string;
  /** Starts the copy's scripts. */
  readonly launch: LaunchProgram;
}

/**
 * What runs is what was trusted: scripts on the host run in a copy whose digest was taken of the
 * very bytes that were written.
 */
export interface HostCopies {
  /**
   * @throws AppError OS_NOT_TRUSTED when the definition is not of this digest any more, OS_INVALID
   */
  make(definition: OsDefinition, digest: string): Promise<HostCopy>;
  /** Removes what a daemon left that was killed. */
  sweep(): Promise<void>;
}

/**
 * @param dir of its own, on a file system where programs may run (which /run is often not)
 * @param launch how scripts of copies are started
 */
export function createHostCopies(dir: string, launch: LaunchProgram): HostCopies {
  return {
    make: async (definition, digest) => {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await using undo = new AsyncDisposableStack();
      const place = await mkdtemp(join(dir, 'copy-'));
      undo.defer(() => rm(place, { recursive: true, force: true }));
      // A definition has the name of its folder.
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
    sweep: () => rm(dir, { recursive: true, force: true }),
  };
}

function changed({ name, path }: OsDefinition): AppError {
  return new AppError('OS_NOT_TRUSTED', `OS '${name}' changed after this operation began`, {
    details: { os: name, path },
    hint: `Show why it is not trusted: gnt-os info ${name}`,
  });
}
