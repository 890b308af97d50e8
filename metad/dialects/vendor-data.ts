import type { ServedView } from '../view/served-view.ts';
import { bootReportParts } from './boot-report-parts.ts';
import { guestAgentParts } from './guest-agent.ts';
import { multipart, operatorsPart } from './multi-part.ts';

/**
 * cloud-init's vendor-data: the operator's document and, after it, the service's own part. Always
 * UTF-8, as OpenStack's flavour carries it in JSON. Empty when there is neither.
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
