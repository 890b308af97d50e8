import {
  closeSync,
  copyFileSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/*
 * Another process appends to these logs (O_APPEND) and continues at the start of a truncated one.
 * Its concurrent writes may be lost.
 */

/** Opens a log for its writer, keeping the content. The caller closes it. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  return openSync(path, 'a', 0o640);
}

/** Returns the last `maxBytes` of an open file. */
export function readTail(fd: number, maxBytes: number): string {
  const { size } = fstatSync(fd);
  const buffer = Buffer.alloc(Math.min(size, maxBytes));
  const length = readSync(fd, buffer, 0, buffer.length, size - buffer.length);
  return buffer.subarray(0, length).toString('utf8');
}

/** Returns the last `maxBytes` of a file, or an empty string if it is missing. */
export function readFileTail(path: string, maxBytes: number): string {
  return ifThere(path, 'r', (fd) => readTail(fd, maxBytes)) ?? '';
}

/** Truncates an open file larger than `maxBytes`. */
export function bound(fd: number, maxBytes: number): void {
  if (fstatSync(fd).size > maxBytes) ftruncateSync(fd);
}

/** Truncates a log larger than `maxBytes`, after a copy of its content to `previousPath`. */
export function boundFile(path: string, maxBytes: number, previousPath?: string): void {
  ifThere(path, 'r+', (fd) => {
    if (previousPath !== undefined && fstatSync(fd).size > maxBytes)
      copyFileSync(path, previousPath);
    bound(fd, maxBytes);
  });
}

function ifThere<T>(path: string, flags: string, use: (fd: number) => T): T | undefined {
  let fd: number;
  try {
    fd = openSync(path, flags);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
