import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { KIB } from '#shared/units/bytes.ts';

/** Of each of the two buffers of a transfer. */
const READ_BYTES = 256 * KIB;

/**
 * Sends a part of a file, and ends the answer. Two buffers are filled in turn, one while the other
 * is on its way: a new one for each read would be memory that the engine collects late and dearly.
 * @throws Error when the file has become shorter, or the reader has gone away
 */
export async function sendBytes(
  handle: FileHandle,
  { first, last }: { readonly first: number; readonly last: number },
  response: ServerResponse,
): Promise<void> {
  const length = Math.min(READ_BYTES, last - first + 1);
  let [next, sending] = [Buffer.allocUnsafeSlow(length), Buffer.allocUnsafeSlow(length)];
  let sent: Promise<void> | undefined;
  for (let at = first; at <= last;) {
    const { bytesRead } = await handle.read(next, 0, Math.min(length, last + 1 - at), at);
    await sent;
    if (bytesRead === 0) throw new Error('the file became shorter while it was sent');
    sent = write(response, next.subarray(0, bytesRead));
    // It is looked at after the next read.
    sent.catch(() => undefined);
    at += bytesRead;
    [next, sending] = [sending, next];
  }
  await sent;
  response.end();
}

/** Resolves when the system has the bytes: the buffer is free again. */
function write(response: ServerResponse, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new Error('the reader went away'));
    // A write would be an error that nobody hears.
    if (response.destroyed) return onClose();
    response.once('close', onClose);
    response.write(chunk, (error) => {
      response.off('close', onClose);
      if (error) reject(error);
      else resolve();
    });
  });
}
