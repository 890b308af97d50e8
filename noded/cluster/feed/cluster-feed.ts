import {
  type ChangeFollower,
  type ClusterChange,
  type FeedSources,
  startFollower,
} from './change-follower.ts';
import type { Numbered } from './change-ring.ts';

/** Time for readers to return before the feed stops: a page that is reloaded, a lost network. */
const LINGER_MS = 60_000;
/** Shorter than the time after which proxies close a silent connection. */
const HEARTBEAT_MS = 15_000;

export interface OpenFeed {
  /** The changes after the client's id follow. */
  readonly isResumed: boolean;
  /** The id from which the changes follow. */
  readonly id: string;
  /** Yields each change, and null after a time without one. */
  readonly changes: AsyncIterable<Numbered<ClusterChange> | null>;
}

/**
 * Follows all changes of the cluster while it has readers. Readers take changes from a ring at
 * their own speed. A reader that is too slow gets a reset.
 */
export class ClusterFeed implements AsyncDisposable {
  readonly #sources: FeedSources;
  readonly #lingerMs: number;
  #follower: Promise<ChangeFollower> | undefined;
  #readers = 0;
  #stopping: NodeJS.Timeout | undefined;

  constructor(sources: FeedSources, { lingerMs = LINGER_MS }: { lingerMs?: number } = {}) {
    this.#sources = sources;
    this.#lingerMs = lingerMs;
  }

  /**
   * Opens the feed for a reader until the signal aborts. Lists that are read after this call
   * contain all changes before those of the feed.
   * @param lastId the last id that the reader has; undefined if it has none
   * @throws AppError STORE_UNAVAILABLE
   */
  async open(lastId: string | undefined, signal: AbortSignal): Promise<OpenFeed> {
    this.#enter(signal);
    const follower = await this.#start();
    const isResumed = lastId !== undefined && follower.ring.after(lastId) !== undefined;
    const id = isResumed ? lastId : follower.ring.lastId;
    return { isResumed, id, changes: readChanges(follower, id, signal) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#stopping);
    await this.#stop();
  }

  #enter(signal: AbortSignal): void {
    this.#readers += 1;
    clearTimeout(this.#stopping);
    const leave = (): void => {
      this.#readers -= 1;
      if (this.#readers > 0) return;
      this.#stopping = setTimeout(() => void this.#stop(), this.#lingerMs).unref();
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  }

  #start(): Promise<ChangeFollower> {
    if (this.#follower !== undefined) return this.#follower;
    const started = startFollower(this.#sources);
    this.#follower = started;
    started.catch(() => {
      if (this.#follower === started) this.#follower = undefined;
    });
    return started;
  }

  async #stop(): Promise<void> {
    const follower = this.#follower;
    this.#follower = undefined;
    // Its reader has the error of a failed start.
    const started = await follower?.catch(() => undefined);
    started?.[Symbol.dispose]();
  }
}

async function* readChanges(
  follower: ChangeFollower,
  from: string,
  signal: AbortSignal,
): AsyncGenerator<Numbered<ClusterChange> | null> {
  const { ring } = follower;
  let last = from;
  while (!signal.aborted) {
    const next = ring.after(last);
    if (next === null) {
      if (!(await follower.untilChanged(HEARTBEAT_MS, signal))) yield null;
      continue;
    }
    const told = next ?? { id: ring.lastId, change: { event: 'reset' } as const };
    last = told.id;
    yield told;
  }
}
