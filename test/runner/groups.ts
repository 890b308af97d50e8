import { globSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * What a run may consist of. `check` is the linters and the compiler; the others are test files,
 * told apart by their names.
 */
export const groups = ['check', 'fast', 'vm', 'long'] as const;
export type Group = (typeof groups)[number];

/** Which group a test file belongs to: the word before `.test.ts` says what it needs. */
export function groupOf(file: string): Exclude<Group, 'check'> {
  if (file.endsWith('.long.test.ts')) return 'long';
  return file.endsWith('.vm.test.ts') ? 'vm' : 'fast';
}

/**
 * @returns the test files below `test/` of a checkout, by group, with paths relative to the
 * checkout
 */
export function findTestFiles(
  projectDir: string,
): Readonly<Record<Exclude<Group, 'check'>, readonly string[]>> {
  const files = globSync('test/**/*.test.ts', { cwd: projectDir })
    .map((file) => relative(projectDir, join(projectDir, file)))
    .sort();
  return {
    // The short ones last, so that no long one is left for one worker while the others have nothing
    // to do.
    fast: [
      ...files.filter((file) => groupOf(file) === 'fast' && file.endsWith('.int.test.ts')),
      ...files.filter((file) => groupOf(file) === 'fast' && !file.endsWith('.int.test.ts')),
    ],
    vm: files.filter((file) => groupOf(file) === 'vm'),
    long: files.filter((file) => groupOf(file) === 'long'),
  };
}
