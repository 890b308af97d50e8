import type { Visibility } from './primitives.ts';

/** Tells whether logs and answers to operators must not contain a value of this visibility. */
export function isHiddenFromLogs(visibility: Visibility): boolean {
  return visibility !== 'public';
}

/**
 * Returns a script's variable for an OS parameter: upper case, with dashes as underscores
 * (ganeti-os-interface(7)). Slashes, which Ganeti does not allow, become underscores too.
 */
export function ospVariable(name: string): string {
  return `OSP_${name.toUpperCase().replaceAll(/[-/]/g, '_')}`;
}
