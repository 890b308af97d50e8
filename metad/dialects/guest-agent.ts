import type { ServedView } from '../view/served-view.ts';
import type { Leaf } from '../view/leaf.ts';
import { textPart } from './multi-part.ts';
import { isDialectServed } from './served-dialects.ts';

/** How a guest that has run lists gets the program that runs them. It holds no secret. */
export function guestAgentLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { guestAgent, lifecycle } = view;
  if (!guestAgent || !lifecycle) return [];
  return [
    ['guest/agent', guestAgent.agent],
    ['guest/enable', guestAgent.enable],
  ];
}

/**
 * What cloud-init gets for it. Of vendor-data it runs boothooks in every boot, too early for an
 * agent, so that this one leaves a script for the last stage. It asks the network for nothing.
 */
export function guestAgentParts(view: ServedView): readonly string[] {
  if (guestAgentLeaves(view).length === 0 || !isDialectServed(view, 'ganeti')) return [];
  const enable = view.guestAgent?.enable.body.toString() ?? '';
  return [textPart('cloud-boothook', perBootScript('gnt-enable', enable), 'gnt-enable')];
}

function perBootScript(name: string, script: string): string {
  return `#cloud-boothook
#!/bin/sh
scripts=/var/lib/cloud/scripts/per-boot
mkdir -p "$scripts"
cat >"$scripts/${name}" <<'GNT_SCRIPT_END'
${script}GNT_SCRIPT_END
chmod 755 "$scripts/${name}"
`;
}
