import { readdir } from 'node:fs/promises';
import { removeLogs } from './install-log.ts';

const LOG = /^(?:install|script)-([0-9a-f-]{36})\.log$/;

/**
 * Removes logs of installations and scripts of instances that moved to another node, which writes
 * its own. Audit logs stay. Logs without a record stay, because it may come back.
 */
export async function sweepLogs(
  logDir: string,
  {
    index,
    owns,
  }: {
    readonly index: {
      list(): Promise<readonly { readonly uuid: string; readonly primaryNode: string }[]>;
    };
    readonly owns: (node: string) => boolean;
  },
): Promise<void> {
  const logged = new Set((await readdir(logDir)).flatMap((name) => LOG.exec(name)?.[1] ?? []));
  if (logged.size === 0) return;
  for (const { uuid, primaryNode } of await index.list())
    if (logged.has(uuid) && !owns(primaryNode)) await removeLogs(logDir, uuid);
}
