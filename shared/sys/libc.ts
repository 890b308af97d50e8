import { getSystemErrorName } from 'node:util';
import koffi from 'koffi';

/**
 * System calls without an API in Node, grouped by subject into the files of this folder. All are
 * synchronous; the caller closes returned descriptors.
 */
export const libc = koffi.load('libc.so.6');
const cClose = libc.func('int close(int fd)');

/** @throws Error of `errno`, with `code` */
export function checked(call: string, returned: unknown): number {
  const result = numberOf(returned);
  if (result >= 0) return result;
  const code = errorName();
  throw Object.assign(new Error(`${call}: ${code}`), { code, syscall: call });
}

/** @returns the error name of the previous call */
export function errorName(): string {
  return getSystemErrorName(-koffi.errno());
}

/** Narrows the untyped result of koffi; all these calls are declared to return an int. */
export function numberOf(returned: unknown): number {
  if (typeof returned !== 'number') throw new TypeError('a system call did not return a number');
  return returned;
}

export function closeFd(fd: number): void {
  checked('close', cClose(fd));
}
