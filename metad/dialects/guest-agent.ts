import { parseAgentTags } from '#shared/contract/agent-tags.ts';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';
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
 * What cloud-init gets for it, in one of its two documents: with RightLink's tag in user-data,
 * which EC2's guests have too, else in vendor-data. Of both cloud-init runs boothooks in every
 * boot, too early for an agent, so that this one leaves a script for the last stage. Ours asks the
 * network for nothing; where a tag names another installer, a guest gets that one and not ours.
 */
export function guestAgentParts(
  view: ServedView,
  place: 'user-data' | 'vendor-data',
): readonly string[] {
  const tags = view.mode === 'run' ? parseAgentTags(view.tags) : null;
  if (place !== (tags === null ? 'vendor-data' : 'user-data')) return [];
  if (tags !== null && (tags.shellscriptUrl ?? tags.includeUrl) !== null) {
    const { shellscriptUrl, includeUrl } = tags;
    return [
      ...(shellscriptUrl === null
        ? []
        : [perBootPart('gnt-installer', installingScript(shellscriptUrl))]),
      ...(includeUrl === null
        ? []
        : [textPart('x-include-url', `#include\n${includeUrl}\n`, 'gnt-include')]),
    ];
  }
  if (guestAgentLeaves(view).length === 0 || !isDialectServed(view, 'ganeti')) return [];
  return [perBootPart('gnt-enable', view.guestAgent?.enable.body.toString() ?? '')];
}

function perBootPart(name: string, script: string): string {
  const hook = `#cloud-boothook
#!/bin/sh
scripts=/var/lib/cloud/scripts/per-boot
mkdir -p "$scripts"
cat >"$scripts/${name}" <<'GNT_SCRIPT_END'
${script}GNT_SCRIPT_END
chmod 755 "$scripts/${name}"
`;
  return textPart('cloud-boothook', hook, name);
}

/**
 * Gets an installer and runs it, in every boot: it finds out itself that it has been there. Of one
 * boot alone, so that nothing of it is left when the tag is gone.
 */
function installingScript(url: string): string {
  return `#!/bin/sh
rm -f "$0"
umask 077
url=${quoteForShell(url)}
file=/var/lib/cloud/scripts/gnt-installer
get() {
  if command -v curl >/dev/null; then curl -sSfL -m 300 -o "$file" "$url"; else wget -q -T 300 -O "$file" "$url"; fi
}
tries=1
until get; do
  [ "$tries" -lt 10 ] || exit 1
  tries=$((tries + 1))
  sleep 6
done
chmod 700 "$file" && "$file"
status=$?
rm -f "$file"
exit "$status"
`;
}
