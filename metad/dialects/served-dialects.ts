import type { Dialect } from '#shared/contract/primitives.ts';
import type { ServedView } from '../view/served-view.ts';

/**
 * Returns whether a dialect is on. The appliance needs the ganeti dialect during an installation.
 */
export function isDialectServed(view: ServedView, dialect: Dialect): boolean {
  return view.dialects.includes(dialect) || (dialect === 'ganeti' && view.mode === 'install');
}
