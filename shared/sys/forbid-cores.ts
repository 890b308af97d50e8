import { setCoreLimit, setUndumpable } from './process-limits.ts';

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
  setCoreLimit(NO_CORE_BYTES);
  setUndumpable();
}
