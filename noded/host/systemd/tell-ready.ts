import { writeSync } from 'node:fs';
import type { Logger } from '#shared/log/log.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixClient } from '#shared/sys/unix-sockets.ts';

/**
 * Tells whoever started this service that it can be used: what waits for that (`systemctl start`,
 * an upgrade of the package, a command after it) goes on (sd_notify(3)).
 * @param path systemd's socket; undefined, and in another form than a path, nobody is told
 */
export function tellReady(path: string | undefined, logger: Logger): void {
  if (!path?.startsWith('/')) return;
  try {
    const fd = openUnixClient(path, 'datagrams');
    try {
      writeSync(fd, 'READY=1');
    } finally {
      closeFd(fd);
    }
  } catch (error) {
    // It works all the same; who waits for the word gives up by itself.
    logger.warn('node.ready-not-told', { err: error });
  }
}
