import { read } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { readsOfCache } from '../sys/read-cached.ts';
import { KIB } from '../units/bytes.ts';

/**
 * The size of the one buffer of a transfer. While it is filled, the reader has what is in the
 * socket: a second one gained nothing, and a new one for each read would be memory that the engine
 * collects late and dearly.
 */
const READ_BYTES = 256 * KIB;

/**
 * Sends a part of an open file, and ends the answer.
 * @param fd stays open until this has resolved or rejected, and is the caller's to close
 * @throws Error when the file has become shorter, or the reader has gone away
 */
export function sendFilePart(
  fd: number,
  [first, last]: readonly [first: number, last: number],
  response: ServerResponse,
): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, last - first + 1));
  const readCached = readsOfCache(fd, buffer);
  return new Promise((resolve, reject) => {
    let at = first;
    let isReading = false;
    let isOver = false;
    const finish = (error?: Error | null): void => {
      if (isOver) return;
      isOver = true;
      response.off('close', onClose);
      if (error) return reject(error);
      response.end();
      resolve();
    };
    const onClose = (): void => {
      // The descriptor is in use until what is read is there.
      if (!isReading) finish(new Error('the reader disconnected'));
    };
    const onRead = (error: Error | null, bytesRead: number): void => {
      if (isOver) return;
      isReading = false;
      if (error) return finish(error);
      if (bytesRead === 0)
        return finish(new Error('the file became shorter while it was being sent'));
      // A write would be an error that nobody hears.
      if (response.destroyed) return finish(new Error('the reader disconnected'));
      at += bytesRead;
      // Written means that the system has the bytes: the buffer is free again.
      response.write(buffer.subarray(0, bytesRead), next);
    };
    const next = (error?: Error | null): void => {
      if (isOver) return;
      if (error || at > last) return finish(error);
      const length = Math.min(buffer.length, last + 1 - at);
      const bytesRead = readCached(at, length);
      // The next read has a turn of its own: a fast reader would take all turns of the others.
      if (bytesRead > 0) return void setImmediate(onRead, null, bytesRead);
      isReading = true;
      read(fd, buffer, 0, length, at, onRead);
    };
    response.on('close', onClose);
    if (response.destroyed) onClose();
    else next();
  });
}
