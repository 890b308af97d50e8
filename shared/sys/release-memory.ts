import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import koffi from 'koffi';

/** What follows a start at once is over by then: views that are put, a first question. */
const SETTLED_MS = 5_000;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/**
 * Gives back to the system what is free in this process: V8 and the C library keep for later what a
 * start needed, a sixth of what a daemon holds then, and a daemon that mostly waits never needs it.
 * It takes some tens of milliseconds.
 */
export function releaseMemory(): void {
  setFlagsFromString('--expose-gc');
  // The name is V8's, whose only way to it this is for a process that runs.
  const collect = runInNewContext('gc') as Collect;
  // This is the kind of collection that keeps no empty pages either.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const trim = koffi.load('libc.so.6').func('int malloc_trim(size_t pad)');
  trim(0);
}

/** Releases what a start has left, once it is over; it keeps no process running. */
export function releaseMemoryWhenSettled(): void {
  setTimeout(releaseMemory, SETTLED_MS).unref();
}
