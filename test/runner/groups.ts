import { globSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

/**
 * What a run may consist of. `check` is the linters and the compiler; the others are test files,
 * told apart by their names.
 */
export const groups = ['check', 'fast', 'slow', 'vm', 'long', 'alone'] as const;
export type Group = (typeof groups)[number];
export type FileGroup = Exclude<Group, 'check'>;

/** What takes too long for any run, and is run by hand: `node --test FILE`. */
const BY_HAND = '.hand.test.ts';

/** Which group a test file belongs to: the word before `.test.ts` says what it needs. */
export function groupOf(file: string): FileGroup {
  const named = ['slow', 'vm', 'long', 'alone'] as const;
  return named.find((word) => file.endsWith(`.${word}.test.ts`)) ?? 'fast';
}

/** Whether a file needs nothing, not even a process of its own. */
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
