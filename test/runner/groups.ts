import { globSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/**
 * Groups of a run. `check` is the linters and the compiler; the other groups are test files,
 * distinguished by their names.
 */
export const groups = ['check', 'fast', 'slow', 'vm', 'long', 'alone'] as const;
export type Group = (typeof groups)[number];
export type FileGroup = Exclude<Group, 'check'>;

/** Too slow for any run; start these files with `node --test FILE`. */
const BY_HAND = '.hand.test.ts';

/** Returns the group of a test file: the word before `.test.ts` names it. */
export function groupOf(file: string): FileGroup {
  const named = ['slow', 'vm', 'long', 'alone'] as const;
  return named.find((word) => file.endsWith(`.${word}.test.ts`)) ?? 'fast';
}

/** Tells whether a file needs no process of its own. */
export function isPure(file: string): boolean {
  return /^[^.]+\.test\.ts$/.test(basename(file));
}

/**
 * @returns the test files below `test/` of a checkout, by group, with paths relative to the
 * checkout
 */
export function findTestFiles(projectDir: string): Readonly<Record<FileGroup, readonly string[]>> {
  const files = globSync('test/**/*.test.ts', { cwd: projectDir })
    .map((file) => relative(projectDir, join(projectDir, file)))
    .filter((file) => !file.endsWith(BY_HAND))
    .sort();
  const of = (group: FileGroup): string[] => files.filter((file) => groupOf(file) === group);
  return {
    fast: of('fast'),
    slow: of('slow'),
    vm: of('vm'),
    long: of('long'),
    alone: of('alone'),
  };
}
