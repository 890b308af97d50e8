import type { ServedView } from '../view/served-view.ts';
import { bootReportParts } from './boot-report-parts.ts';
import { guestAgentParts } from './guest-agent-leaves.ts';
import { multipart, operatorsPart } from './multi-part.ts';

/**
 * Returns cloud-init's vendor-data: the operator's document, then our own parts. Always UTF-8,
 * since OpenStack embeds it in JSON.
 */
export function vendorData(view: ServedView): Buffer {
  const operators = Buffer.from(view.vendorData ?? '', 'base64');
  const parts = [
    ...(operators.length > 0 ? [operatorsPart(operators)] : []),
    ...bootReportParts(view, 'vendor-data'),
    ...guestAgentParts(view, 'vendor-data'),
  ];
  return Buffer.from(parts.length === 0 ? '' : multipart(parts));
}
