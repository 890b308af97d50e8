import { setCoreLimit, setUndumpable } from './process-limits.ts';

/**
 * One byte: too little for a core file, and the one value at which the kernel starts no program for
 * a core either (`|` in kernel.core_pattern). Zero forbids files alone: programs are fed a core
 * whatever the limit (core(5)).
 */
export const NO_CORE_BYTES = 1;

/**
 * This process, and every program that it starts, leaves no core. This process cannot be traced by
 * others of its user either, nor its memory be read. Programs that it starts can, as by any start.
 *
 * Its memory is not locked: V8 gives memory back by calls that fail on locked pages, and ends the
 * process then. What keeps it out of swap is the service's `MemorySwapMax=0`.
 */
export function forbidCores(): void {
  setCoreLimit(NO_CORE_BYTES);
  setUndumpable();
}
