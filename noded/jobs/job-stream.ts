import { nextCall } from '#shared/abort/next-call.ts';
import type { JobEvent, JobRecord } from '#shared/contract/job.ts';
import { EventBuffer } from './event-buffer.ts';

/** Remembers the events of one job and passes them to its watchers. Ends with `end`. */
export class JobStream {
  readonly #events = new EventBuffer();
  readonly #watchers = new Set<(event: JobEvent) => void>();
  #hasEnded = false;
  #lastAtMs = 0;

  get length(): number {
    return this.#events.length;
  }

  push(told: JobEvent): void {
    if (this.#hasEnded) return;
    // Watchers resume by time, so it must not go back with the host's clock.
    this.#lastAtMs = Math.max(this.#lastAtMs, told.atMs);
    const event = { ...told, atMs: this.#lastAtMs };
    this.#events.push(event);
    if (event.type === 'end') this.#hasEnded = true;
    for (const watcher of this.#watchers) watcher(event);
  }

  /**
   * Yields all past events, then new ones, until the end or the signal. A slow watcher misses
   * lines, but never the end.
   */
  async *watch(signal: AbortSignal): AsyncGenerator<JobEvent> {
    const pending = new EventBuffer();
    for (const event of this.#events.list()) pending.push(event);
    const waiting = new Set<() => void>();
    const watcher = (event: JobEvent): void => {
      pending.push(event);
      for (const wake of waiting) wake();
    };
    this.#watchers.add(watcher);
    try {
      while (!signal.aborted) {
        const event = pending.shift();
        if (event === undefined) {
          await nextCall(waiting, signal);
          continue;
        }
        yield event;
        if (event.type === 'end') return;
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }
}

/** Yields the events that a record still has after its stream is gone: its log and its end. */
export function* replayEnded(job: JobRecord): Generator<JobEvent> {
  for (const { atMs, message, level = 'info' } of job.log)
    yield { type: 'log', atMs, message, level };
  yield { type: 'end', atMs: job.endedAtMs ?? job.receivedAtMs, job };
}
