import { parseAgentTags } from '#shared/contract/agent-tags.ts';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';
import type { ServedView } from '../view/served-view.ts';
import type { Leaf } from '../view/leaf.ts';
import { textPart } from './multi-part.ts';
import { isDialectServed } from './served-dialects.ts';

/** Serves the run list agent to guests with run lists. It holds no secret. */
export function guestAgentLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { guestAgent, lifecycle } = view;
  if (!guestAgent || !lifecycle) return [];
  return [
    ['guest/agent', guestAgent.agent],
    ['guest/enable', guestAgent.enable],
  ];
}

/**
 * Returns the parts that install the run list agent, in one of two documents: user-data if there is
 * a RightLink tag, since EC2's guests have it too; else vendor-data. cloud-init runs boothooks of
 * both in every boot, but too early for an agent, so the boothook leaves a script for the last
 * stage. Our agent needs no download. A tag that names another installer replaces our agent.
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
 * Downloads and runs an installer in every boot; the installer itself must detect earlier runs. The
 * script deletes itself, so that nothing stays when the tag is removed.
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
