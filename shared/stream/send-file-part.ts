import { read } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { readsOfCache } from '../sys/read-cached.ts';
import { KIB } from '../units/bytes.ts';

/**
 * Size of the one buffer of a transfer. While it is filled, the reader consumes the socket's
 * buffer: a second buffer gained nothing, and a new one per read would be memory that the engine
 * collects late and at high cost.
 */
const READ_BYTES = 256 * KIB;

/**
 * Sends a part of an open file, and ends the response.
 * @param fd stays open until the promise settles; the caller closes it
 * @throws Error when the file became shorter, or the reader disconnected
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
      // The descriptor is in use until the read ends.
      if (!isReading) finish(new Error('the reader disconnected'));
    };
    const onRead = (error: Error | null, bytesRead: number): void => {
      if (isOver) return;
      isReading = false;
      if (error) return finish(error);
      if (bytesRead === 0)
        return finish(new Error('the file became shorter while it was being sent'));
      // A write to a destroyed stream would be an unreported error.
      if (response.destroyed) return finish(new Error('the reader disconnected'));
      at += bytesRead;
      // After the callback the system has the bytes, and the buffer is free.
      response.write(buffer.subarray(0, bytesRead), next);
    };
    const next = (error?: Error | null): void => {
      if (isOver) return;
      if (error || at > last) return finish(error);
      const length = Math.min(buffer.length, last + 1 - at);
      const bytesRead = readCached(at, length);
      // A separate turn for each read, or a fast reader would block all others.
      if (bytesRead > 0) return void setImmediate(onRead, null, bytesRead);
      isReading = true;
      read(fd, buffer, 0, length, at, onRead);
    };
    response.on('close', onClose);
    if (response.destroyed) onClose();
    else next();
  });
}
