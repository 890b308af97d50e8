import type { ServedView } from '../view/served-view.ts';
import { bootReportParts } from './boot-report-parts.ts';
import { guestAgentParts } from './guest-agent.ts';
import { identityPart } from './identity-part.ts';
import { multipart, operatorsPart } from './multi-part.ts';

/**
 * Returns the operator's user-data byte for byte, or empty. With parts of ours (RightLink tags,
 * boot report in user-data) it becomes one part of a multi-part document, after the identity and
 * the agent so that it finds them.
 */
export function userData(view: ServedView): Buffer {
  const operators = Buffer.from(view.userData ?? '', 'base64');
  const identity = identityPart(view);
  const before = [
    ...(identity?.place === 'first' ? [identity.part] : []),
    ...guestAgentParts(view, 'user-data'),
  ];
  const after = [
    ...bootReportParts(view, 'user-data'),
    ...(identity?.place === 'last' ? [identity.part] : []),
  ];
  if (before.length + after.length === 0) return operators;
  const own = operators.length > 0 ? [operatorsPart(operators)] : [];
  return Buffer.from(multipart([...before, ...own, ...after]));
}
