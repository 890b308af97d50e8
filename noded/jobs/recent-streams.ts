import type { JobStream } from './job-stream.ts';

const MAX_STREAMS = 64;
const MAX_EVENTS = 100;

/**
 * Keeps the streams of recently ended jobs with few events. A client that submits a short job can
 * still watch it after its end.
 */
export class RecentStreams {
  readonly #streams = new Map<number, JobStream>();

  get(id: number): JobStream | undefined {
    return this.#streams.get(id);
  }

  /** Keeps a stream, unless it is long: its job was slow enough to be watched while it ran. */
  keep(id: number, stream: JobStream): void {
    if (stream.length > MAX_EVENTS) return;
    this.#streams.set(id, stream);
    const [oldest] = this.#streams.keys();
    if (this.#streams.size > MAX_STREAMS && oldest !== undefined) this.#streams.delete(oldest);
  }
}
