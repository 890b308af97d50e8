import { checked, errorName, libc, numberOf } from './libc.ts';

const cSetrlimit = libc.func('int setrlimit(int resource, const void *limits)');
const cPrctl = libc.func(
  'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
);
const RLIMIT_CORE = 4;
const PR_SET_DUMPABLE = 4;

/**
 * Size of the core files of this process and of those that it starts, for good. One that is lower
 * already stays where it may not be raised.
 */
export function setCoreLimit(bytes: number): void {
  const limits = new BigUint64Array([BigInt(bytes), BigInt(bytes)]);
  const result = numberOf(cSetrlimit(RLIMIT_CORE, Buffer.from(limits.buffer)));
  if (result < 0 && errorName() === 'EPERM') return;
  checked('setrlimit', result);
}

/** Forbids cores, and tracing but by root, until this process executes another program. */
export function setUndumpable(): void {
  checked('prctl', cPrctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}
