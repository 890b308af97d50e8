import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The folder that the programs were installed in, with package.json and node_modules: that of a
 * checkout, or /usr/lib/gnt. The same for a module among its sources and in a bundle.
 */
export const installDir: string = findAbove(import.meta.dirname, 'package.json');

function findAbove(start: string, name: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, name))) return folder;
    if (folder === dirname(folder)) throw new Error(`found no ${name} above ${start}`);
  }
}
