import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installDir } from './install-dir.ts';

/** Returns the common version of all programs. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(installDir, 'package.json'), 'utf8')) as {
    version: string; // our own file
  };
  return version;
}
