import { writeSync } from 'node:fs';
import type { Logger } from '#shared/log/log.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixClient } from '#shared/sys/unix-sockets.ts';

/**
 * Notifies systemd that the service is ready (sd_notify(3)).
 * @param path systemd's socket; no notification when undefined or an abstract socket
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
    // The service works anyway; systemd's start timeout ends the wait.
    logger.warn('node.ready-not-told', { err: error });
  }
}
