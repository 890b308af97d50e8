import { existsSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';

/**
 * A file that was named from where the command runs, as the daemon has to be told of it: absolute.
 * What is no path of here (a URL, a name) stays as it is.
 */
export function fromHere(given: string): string {
  if (isAbsolute(given) || /^[a-z][a-z\d+.-]*:/i.test(given)) return given;
  return /^\.{1,2}\//.test(given) || existsSync(given) ? resolve(given) : given;
}
