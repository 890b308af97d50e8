import type { JobEvent } from '#shared/contract/job.ts';

/** Limit of kept events: a script may print endlessly, and a watcher may not read. */
const MAX_EVENTS = 5000;
/** Excess events before the buffer is tidied. Tidying takes a pass, so it must be rare. */
const SLACK = 1000;

/** Event types without a bound per job. */
const BULKY: ReadonlySet<JobEvent['type']> = new Set(['output', 'script-output', 'log']);

/**
 * Keeps events in order: the newest progress of each activity, and the newest output and log lines.
 *
 * INVARIANT: at most MAX_EVENTS + SLACK events, as long as events other than progress, output and
 * log are few.
 */
export class EventBuffer {
  #events: JobEvent[] = [];
  readonly #newestProgress = new Map<string, JobEvent>();

  get length(): number {
    return this.#events.length;
  }

  push(event: JobEvent): void {
    if (event.type === 'progress') this.#newestProgress.set(event.activity, event);
    this.#events.push(event);
    if (this.#events.length > MAX_EVENTS + SLACK) this.#tidy();
  }

  /** Removes and returns the oldest event; undefined if there is none. */
  shift(): JobEvent | undefined {
    for (;;) {
      const event = this.#events.shift();
      if (event === undefined || this.#isWorthKeeping(event)) return event;
    }
  }

  list(): readonly JobEvent[] {
    return this.#events.filter((event) => this.#isWorthKeeping(event));
  }

  #isWorthKeeping(event: JobEvent): boolean {
    return event.type !== 'progress' || this.#newestProgress.get(event.activity) === event;
  }

  #tidy(): void {
    const kept = this.list();
    let excess = kept.length - MAX_EVENTS;
    this.#events = kept.filter((event) => {
      if (excess <= 0 || !BULKY.has(event.type)) return true;
      excess -= 1;
      return false;
    });
  }
}
