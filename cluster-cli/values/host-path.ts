import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';

/**
 * Resolves a file at the working directory to an absolute path for the daemon. URLs and names stay.
 */
export function fromHere(given: string): string {
  if (isAbsolute(given) || /^[a-z][a-z\d+.-]*:/i.test(given)) return given;
  return /^\.{1,2}\//.test(given) || existsSync(given) ? resolve(given) : given;
}
