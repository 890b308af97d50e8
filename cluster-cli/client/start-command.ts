import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';

/** Where the package puts the unit. */
const UNIT = 'usr/lib/systemd/system/gnt-noded.service';

/**
 * How a person starts the daemon of a root: the service where the package has one for it, which is
 * for `/` only, else the program.
 * @param host the host's own root
 */
export function startCommandOf(root: string, isNpx: boolean, host = '/'): string {
  if (root === '/' && existsSync(join(host, UNIT))) return 'systemctl start gnt-noded';
  // Whoever runs this by npx has no gnt-noded on the PATH.
  const word = /^[\w./-]+$/.test(root) ? root : quoteForShell(root);
  return `${root === '/' ? '' : `GNT_ROOT=${word} `}${isNpx ? 'npx ' : ''}gnt-noded`;
}
