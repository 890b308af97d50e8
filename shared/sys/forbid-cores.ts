import { checked, errorName, libc, numberOf } from './libc.ts';

const cSetrlimit = libc.func('int setrlimit(int resource, const void *limits)');
const cPrctl = libc.func(
  'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
);
const RLIMIT_CORE = 4;
const PR_SET_DUMPABLE = 4;

/**
 * One byte: too small for a core file, and the only value at which the kernel does not start a core
 * program either (`|` in kernel.core_pattern). Zero forbids files only: programs get a core
 * whatever the limit (core(5)).
 */
export const NO_CORE_BYTES = 1;

/**
 * Forbids core dumps of this process and its children. Also forbids other processes of the user to
 * trace this process or read its memory; children can be traced as usual.
 *
 * Memory is not locked: V8 releases memory by calls that fail on locked pages, and then ends the
 * process. `MemorySwapMax=0` of the service keeps it out of swap.
 */
export function forbidCores(): void {
  const limits = new BigUint64Array([BigInt(NO_CORE_BYTES), BigInt(NO_CORE_BYTES)]);
  const result = numberOf(cSetrlimit(RLIMIT_CORE, Buffer.from(limits.buffer)));
  // A lower limit that may not be raised stays.
  if (result >= 0 || errorName() !== 'EPERM') checked('setrlimit', result);
  checked('prctl', cPrctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}
