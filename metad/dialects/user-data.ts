import { stringify } from 'yaml';
import { parseAgentTags } from '#shared/contract/agent-tags.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';
import type { ServedView } from '../view/served-view.ts';
import { bootReportParts } from './boot-report-parts.ts';
import { guestAgentParts } from './guest-agent-leaves.ts';
import { multipart, operatorsPart, textPart } from './multi-part.ts';

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

const PATH = '/var/lib/rightscale-identity';
/** Appends to a list of the operator's document. */
const APPENDED = 'list(append)+dict(no_replace,recurse_list)+str()';

/** A part of user-data, and its place among the others. */
interface PlacedPart {
  readonly part: string;
  readonly place: 'first' | 'last';
}

/**
 * Writes /var/lib/rightscale-identity, readable by root alone, if a tag requests it. A boothook
 * writes it in every boot, before everything else; cloud-config's `write_files` once per instance.
 * During an installation user-data stays the operator's document.
 */
function identityPart(view: ServedView): PlacedPart | null {
  const tags = parseAgentTags(view.tags);
  if (tags === null || view.mode !== 'run') return null;
  const content = identity(view);
  if (tags.identity === 'shellscript') {
    const part = textPart('cloud-boothook', writingScript(content), 'rightscale-identity');
    return { part, place: 'first' };
  }
  const file = { path: PATH, owner: 'root:root', permissions: '0600', content };
  const config = `#cloud-config\n${stringify({ write_files: [file] }, { version: '1.1', lineWidth: 0 })}`;
  // Of two documents the later one decides how both are merged.
  const part = textPart('cloud-config', config, 'rightscale-identity', APPENDED);
  return { part, place: 'last' };
}

/** Returns RightLink's variables. They need no secret: the device identifies the guest. */
function identity({ uuid, clusterName }: ServedView): string {
  return [
    ['client_id', uuid],
    ['client_secret', ''],
    ['account', clusterName],
    ['api_hostname', SERVICE_IPV4],
  ]
    .map(([name = '', value = '']) => `${name}=${quoteForShell(value)}\n`)
    .join('');
}

function writingScript(content: string): string {
  return `#cloud-boothook
#!/bin/sh
umask 077
cat >${PATH}.new <<'GNT_IDENTITY_END'
${content}GNT_IDENTITY_END
mv ${PATH}.new ${PATH}
`;
}
