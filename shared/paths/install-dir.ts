import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The installation folder, with package.json and node_modules: a checkout, or /usr/lib/gnt. The
 * same for source modules and bundles.
 */
export const installDir: string = findAbove(import.meta.dirname, 'package.json');

function findAbove(start: string, name: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, name))) return folder;
    if (folder === dirname(folder)) throw new Error(`found no ${name} above ${start}`);
  }
}
