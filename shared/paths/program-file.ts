import { existsSync } from 'node:fs';
import { extname, join } from 'node:path';

const { dirname, filename } = import.meta;
const extension = extname(filename);
/** The folder of the programs: in a bundle, this module is part of a file in a program's folder. */
const programs = join(dirname, extension === '.ts' ? '../..' : '..');

/**
 * The main file of a program, such as `metad/main`: a source where this one is, else a bundle, of
 * which some are CommonJS.
 */
export function programFile(name: string): string {
  const path = join(programs, name);
  if (extension === '.ts') return `${path}.ts`;
  return [`${path}.mjs`, `${path}.cjs`].find((file) => existsSync(file)) ?? `${path}.mjs`;
}

/**
 * A file that a program reads as it is, such as `metad/guest/agent.sh`: the bundles have copies.
 */
export function programData(path: string): string {
  return join(programs, path);
}
