import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import koffi from 'koffi';

/** By then the work that follows a start, such as views and first requests, is done. */
const SETTLED_MS = 5_000;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/**
 * Returns free memory of this process to the system: V8 and the C library keep memory of the start,
 * a sixth of a daemon's size, which an idle daemon never needs. Takes some tens of milliseconds.
 */
export function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  // V8 has no other access for a running process.
  const collect = runInNewContext('gc') as Collect;
  // Only this flavor releases empty pages too.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const trim = koffi.load('libc.so.6').func('int malloc_trim(size_t pad)');
  trim(0);
}

/** Releases memory after the start, without keeping the process alive. */
export function releaseMemoryWhenSettled(): void {
  setTimeout(releaseMemory, SETTLED_MS).unref();
}
