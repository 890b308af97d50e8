import type { JobStream } from './job-stream.ts';

const MAX_STREAMS = 64;
const MAX_EVENTS = 100;

/**
 * The streams of the newest jobs that have ended, of those with few events: who asks for a short
 * job comes to watch it when it is over, and is told what others were told.
 */
export class RecentStreams {
  readonly #streams = new Map<number, JobStream>();

  get(id: number): JobStream | undefined {
    return this.#streams.get(id);
  }

  /** One with many events is let go of: its job was long, and watched if anybody wanted to. */
  keep(id: number, stream: JobStream): void {
    if (stream.length > MAX_EVENTS) return;
    this.#streams.set(id, stream);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size > MAX_STREAMS && oldest !== undefined) this.#streams.delete(oldest);
  }
}
