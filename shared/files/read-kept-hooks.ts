import { readFile } from 'node:fs/promises';
import { type HookFile, hookFiles } from '../contract/hooks.ts';
import { AppError, systemCodeOf } from '../errors/app-error.ts';
import { parseJson } from '../json/parse-json.ts';

/**
 * Reads the hooks of the last build that was given some. Every later build, also by the node
 * daemon, has them too.
 * @throws AppError with that code
 */
export async function readKeptHooks(
  path: string,
  code: 'APPLIANCE_BUILD' | 'FILE_UNREADABLE',
): Promise<HookFile[]> {
  try {
    return hookFiles.parse(parseJson(await readFile(path, 'utf8')));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw new AppError(code, `cannot read the appliance's hooks in ${path}`, {
      hint: 'Give them again: gnt-appliance build --hooks FOLDER, or remove them: gnt-appliance build --hooks none',
      cause: error,
    });
  }
}
