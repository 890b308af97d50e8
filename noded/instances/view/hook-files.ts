import type { HookFile } from '#shared/contract/hooks.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * The order in which documents of one source are run: by name, by code unit. Pure.
 * @throws AppError VALIDATION for two of the same name
 */
export function sortHooks<File extends Pick<HookFile, 'name'>>(files: readonly File[]): File[] {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const twice = sorted.find(({ name }, index) => name === sorted[index + 1]?.name);
  if (twice === undefined) return sorted;
  throw new AppError('VALIDATION', `two hook documents have the name '${twice.name}'`, {
    hint: 'Hooks run in the order of their names: give each its own, such as 10-users.yaml.',
  });
}
