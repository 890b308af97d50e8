import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** metad.log and the one before it. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;
const TAIL_BYTES = 4096;

/** Opened for appending: a truncated file goes on at its new end. The caller closes it. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  boundLog(path);
  return openSync(path, 'a', 0o640);
}

/** Keeps what is there as `.1` and starts over, once it is too long. Lines written meanwhile may be lost. */
export function boundLog(path: string): void {
  if (!existsSync(path) || statSync(path).size <= MAX_LOG_BYTES) return;
  copyFileSync(path, `${path}.1`);
  truncateSync(path);
}

/** Last line that says something, for an error message. */
export function lastLogLine(path: string): string {
  if (!existsSync(path)) return '';
  const fd = openSync(path, 'r');
  try {
    const { size } = statSync(path);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(fd, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trim().split('\n').at(-1) ?? '';
  } finally {
    closeSync(fd);
  }
}
