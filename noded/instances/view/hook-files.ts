import type { HookFile } from '#shared/contract/hooks.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Sorts the documents of one source into the order of their execution: by name, by code unit. Pure.
 * @throws AppError VALIDATION if two have the same name
 */
export function sortHooks<File extends Pick<HookFile, 'name'>>(files: readonly File[]): File[] {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const twice = sorted.find(({ name }, index) => name === sorted[index + 1]?.name);
  if (twice === undefined) return sorted;
  throw new AppError('VALIDATION', `two hook documents have the name '${twice.name}'`, {
    hint: 'Hooks run in the order of their names: give each its own, such as 10-users.yaml.',
  });
}
