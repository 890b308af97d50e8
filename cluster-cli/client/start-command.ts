import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';

/** Path of the package's unit. */
const UNIT = 'usr/lib/systemd/system/gnt-noded.service';

/**
 * Returns the shell command that starts the daemon of a root: the service for `/` if the package is
 * installed, else the program.
 * @param host the host's own root
 */
export function startCommandOf(root: string, isNpx: boolean, host = '/'): string {
  if (root === '/' && existsSync(join(host, UNIT))) return 'systemctl start gnt-noded';
  // A user of npx has no gnt-noded on the PATH.
  const word = /^[\w./-]+$/.test(root) ? root : quoteForShell(root);
  return `${root === '/' ? '' : `GNT_ROOT=${word} `}${isNpx ? 'npx ' : ''}gnt-noded`;
}
