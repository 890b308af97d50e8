import { setTimeout as sleep } from 'node:timers/promises';
import {
  type InstallEvent,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
  type SignedInstallEvent,
} from '#shared/contract/install-event.ts';
import { messageOf } from '#shared/errors/app-error.ts';

/**
 * Events that wait for a slow or absent host; what scripts print beyond that is dropped, oldest
 * kept, and counted. The agent says less, and is heard beyond that.
 */
const MAX_WAITING_EVENTS = 20_000;
const MAX_WAITING_WORDS = 1_000;
/** The first event is what the host waits for, and the network comes up while the agent starts. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

type LogEvent = Extract<InstallEvent, { type: 'log' }>;

export interface EventSenderOptions {
  readonly sign: (event: InstallEvent) => SignedInstallEvent;
  /** Posts one batch. Resolves with the HTTP status; rejects when there was no answer. */
  readonly post: (batch: readonly SignedInstallEvent[]) => Promise<number>;
  /** Told about batches that the host refused; for the serial console. */
  readonly complain: (text: string) => void;
}

/**
 * Sends events in order, in batches, each until the host has acknowledged it.
 *
 * INVARIANTS: one batch is in flight at a time; an event leaves the queue only when its batch was
 * answered with 2xx, or with a 4xx that no repetition would change; what is sent again is the same
 * bytes with the same number.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #waiting: InstallEvent[] = [];
  /** Signed, and too large for the batch before it. */
  #next: SignedInstallEvent | null = null;
  #sending: Promise<void> | null = null;
  #dropped = 0;
  /** The first of those that were dropped since the host was told so, and how many. */
  #gap: { readonly first: LogEvent; count: number } | null = null;
  #refused = 0;
  #hasArrived = false;

  constructor(options: EventSenderOptions) {
    this.#options = options;
  }

  send(event: InstallEvent): void {
    if (event.type === 'log' && this.#isFullFor(event)) {
      this.#dropped += 1;
      this.#gap ??= { first: event, count: 0 };
      this.#gap.count += 1;
      return;
    }
    this.#tellGap();
    this.#waiting.push(event);
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = null;
    });
  }

  #isFullFor({ stream }: LogEvent): boolean {
    const limit = MAX_WAITING_EVENTS + (stream === 'agent' ? MAX_WAITING_WORDS : 0);
    return this.#waiting.length >= limit;
  }

  /** In the place of the lines that are not there, so that nobody takes the log for whole. */
  #tellGap(): void {
    if (this.#gap === null) return;
    const { first, count } = this.#gap;
    this.#gap = null;
    const line = `${count} lines are missing here: the host did not accept them in time`;
    this.#waiting.push({ ...first, stream: 'agent', line });
  }

  get droppedEvents(): number {
    return this.#dropped;
  }

  /** Events that the host will never have, since it called them wrong. */
  get refusedEvents(): number {
    return this.#refused;
  }

  /** Resolves when everything so far is acknowledged (true), or after `timeoutMs` (false). */
  async flush(timeoutMs: number): Promise<boolean> {
    const timer = new AbortController();
    const deadline = sleep(timeoutMs, false, { signal: timer.signal }).catch(() => false);
    const done = (this.#sending ?? Promise.resolve()).then(() => true);
    const isFlushed = await Promise.race([done, deadline]);
    timer.abort();
    return isFlushed;
  }

  async #drain(): Promise<void> {
    // Lets events of the same turn share a batch.
    await Promise.resolve();
    for (let batch = this.#takeBatch(); batch.length > 0; batch = this.#takeBatch())
      await this.#deliver(batch);
  }

  /**
   * As many as fit into one POST. An event is signed when its turn comes, so that those that were
   * dropped leave no gap.
   */
  #takeBatch(): SignedInstallEvent[] {
    const batch: SignedInstallEvent[] = [];
    let bytes = '[]'.length;
    while (batch.length < MAX_EVENTS_PER_BATCH) {
      this.#next ??= this.#signNext();
      if (this.#next === null) break;
      bytes += sizeOf(this.#next);
      if (batch.length > 0 && bytes > MAX_EVENTS_BODY_BYTES) break;
      batch.push(this.#next);
      this.#next = null;
    }
    return batch;
  }

  #signNext(): SignedInstallEvent | null {
    const event = this.#waiting.shift();
    return event ? this.#options.sign(event) : null;
  }

  async #deliver(batch: readonly SignedInstallEvent[]): Promise<void> {
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = this.#nextDelay(delayMs)) {
      const answer = await this.#options.post(batch).catch((error: unknown) => messageOf(error));
      if (typeof answer === 'number') {
        this.#hasArrived = true;
        if (answer >= 200 && answer < 300) return;
        if (answer >= 400 && answer < 500 && answer !== 429 && answer !== 408) {
          this.#refused += batch.length;
          this.#options.complain(`the host refused ${batch.length} events with status ${answer}`);
          return;
        }
      }
      await sleep(delayMs);
    }
  }

  /** Until the host was there at all, it is not asked less and less often. */
  #nextDelay(delayMs: number): number {
    return this.#hasArrived ? Math.min(delayMs * 2, MAX_RETRY_MS) : delayMs;
  }
}

/** In the body of a POST, with a comma. */
function sizeOf(event: SignedInstallEvent): number {
  return Buffer.byteLength(JSON.stringify(event)) + 1;
}
