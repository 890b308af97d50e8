import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { AptSourceFile } from './apt-sources.ts';

/** Reads the host's apt source files in apt's order. Skips missing ones. */
export function readAptSources(aptDirectory = '/etc/apt'): AptSourceFile[] {
  const parts = join(aptDirectory, 'sources.list.d');
  const names = orMissing(() => readdirSync(parts), []).sort();
  const paths = [join(aptDirectory, 'sources.list'), ...names.map((name) => join(parts, name))];
  return paths.flatMap((name) => orMissing(() => [{ name, text: readFileSync(name, 'utf8') }], []));
}

function orMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return otherwise;
  }
}
