import { existsSync } from 'node:fs';
import { extname, join } from 'node:path';

const { dirname, filename } = import.meta;
const extension = extname(filename);
/** The folder of the programs. In a bundle, this module is part of a file in a program's folder. */
const programs = join(dirname, extension === '.ts' ? '../..' : '..');

/**
 * Returns the main file of a program such as `metad/main`: a source file in a checkout, else a
 * bundle, of which some are CommonJS.
 */
export function programFile(name: string): string {
  const path = join(programs, name);
  if (extension === '.ts') return `${path}.ts`;
  return [`${path}.mjs`, `${path}.cjs`].find((file) => existsSync(file)) ?? `${path}.mjs`;
}

export function programData(path: string): string {
  return join(programs, path);
}
