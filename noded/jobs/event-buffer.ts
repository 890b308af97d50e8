import type { JobEvent } from '#shared/contract/job.ts';

/** Events that are kept; a script may print for ever, and a watcher may not read. */
const MAX_EVENTS = 5000;
/**
 * How many more may gather before the buffer is tidied: tidying takes a pass, so it must be rare.
 */
const SLACK = 1000;

/** Events that a job may have without end. */
const BULKY: ReadonlySet<JobEvent['type']> = new Set(['output', 'script-output', 'log']);

/**
 * Events in their order, as many as are worth keeping: of progress the newest per activity, of
 * output and log lines the newest.
 *
 * INVARIANT: never longer than MAX_EVENTS + SLACK, as long as events other than progress, output
 * and log are few.
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

  /** The oldest event; undefined when there is none. */
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
