import { checked, errorName, libc, numberOf } from './libc.ts';

const cSetrlimit = libc.func('int setrlimit(int resource, const void *limits)');
const cPrctl = libc.func(
  'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
);
const RLIMIT_CORE = 4;
const PR_SET_DUMPABLE = 4;

/**
 * Limits core files of this process and its children for good. A lower limit that may not be raised
 * stays.
 */
export function setCoreLimit(bytes: number): void {
  const limits = new BigUint64Array([BigInt(bytes), BigInt(bytes)]);
  const result = numberOf(cSetrlimit(RLIMIT_CORE, Buffer.from(limits.buffer)));
  if (result < 0 && errorName() === 'EPERM') return;
  checked('setrlimit', result);
}

/** Forbids core dumps, and tracing except by root, until this process executes another program. */
export function setUndumpable(): void {
  checked('prctl', cPrctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}
