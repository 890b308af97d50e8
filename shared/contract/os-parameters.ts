import type { Visibility } from './primitives.ts';

/** Whether a value of this visibility may stand in no log and in no answer to an operator. */
export function isHiddenFromLogs(visibility: Visibility): boolean {
  return visibility !== 'public';
}

/**
 * The variable by which a script finds an OS parameter: upper case, dashes as underscores
 * (ganeti-os-interface(7)), and slashes, which Ganeti has not.
 */
export function ospVariable(name: string): string {
  return `OSP_${name.toUpperCase().replaceAll(/[-/]/g, '_')}`;
}
