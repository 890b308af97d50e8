import { getSystemErrorName } from 'node:util';
import koffi from 'koffi';

/**
 * The system calls that Node has no API for, by what they are about, are the files of this folder.
 * Everything in them is synchronous; descriptors that are returned belong to the caller, who closes
 * them.
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

/** @returns the name of the error of the call before */
export function errorName(): string {
  return getSystemErrorName(-koffi.errno());
}

/** koffi types nothing that a call returns; all of these are declared to return an int. */
export function numberOf(returned: unknown): number {
  if (typeof returned !== 'number') throw new TypeError('a system call did not return a number');
  return returned;
}

export function closeFd(fd: number): void {
  checked('close', cClose(fd));
}
