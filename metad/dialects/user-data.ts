import type { ServedView } from '../view/served-view.ts';

/** The operator's user-data, byte for byte; empty when there is none. */
export function userData(view: ServedView): Buffer {
  return Buffer.from(view.userData ?? '', 'base64');
}
