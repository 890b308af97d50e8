import type { Dialect } from '#shared/contract/primitives.ts';
import type { ServedView } from '../view/served-view.ts';

/** The appliance speaks the ganeti dialect, so that one is always on during an installation. */
export function isDialectServed(view: ServedView, dialect: Dialect): boolean {
  return view.dialects.includes(dialect) || (dialect === 'ganeti' && view.mode === 'install');
}
