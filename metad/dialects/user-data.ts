import type { ServedView } from '../view/served-view.ts';
import { bootReportParts } from './boot-report-parts.ts';
import { multipart, operatorsPart } from './multi-part.ts';

/**
 * The operator's user-data, byte for byte; empty when there is none. Where it was asked for, in a
 * multi-part document before the part that has cloud-init tell its boot.
 */
export function userData(view: ServedView): Buffer {
  const operators = Buffer.from(view.userData ?? '', 'base64');
  const own = bootReportParts(view, 'user-data');
  if (own.length === 0) return operators;
  return Buffer.from(multipart(operators.length > 0 ? [operatorsPart(operators), ...own] : own));
}
