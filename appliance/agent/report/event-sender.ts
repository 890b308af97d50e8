import { setTimeout as sleep } from 'node:timers/promises';
import {
  type InstallEvent,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
  type SignedInstallEvent,
} from '#shared/contract/install-event.ts';
import { messageOf } from '#shared/errors/app-error.ts';

/**
 * Events that wait for a slow or absent host. Further lines of scripts are dropped and counted. The
 * agent's own lines have extra room.
 */
const MAX_WAITING_EVENTS = 20_000;
const MAX_WAITING_WORDS = 1_000;
/** The host waits for the first event, and the network comes up while the agent starts. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

type LogEvent = Extract<InstallEvent, { type: 'log' }>;

export interface EventSenderOptions {
  readonly sign: (event: InstallEvent) => SignedInstallEvent;
  /** Posts one batch. Resolves with the HTTP status; rejects without an answer. */
  readonly post: (batch: readonly SignedInstallEvent[]) => Promise<number>;
  /** Receives messages about refused batches, for the serial console. */
  readonly complain: (text: string) => void;
}

/**
 * Sends events in order, in batches, each until the host has acknowledged it.
 * - INVARIANTS: one batch is in flight at a time; an event leaves the queue only when its batch was
 *   answered with 2xx, or with a permanent 4xx; a repetition has the same bytes and number.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #waiting: InstallEvent[] = [];
  /** Signed, but too large for the previous batch. */
  #next: SignedInstallEvent | null = null;
  #sending: Promise<void> | null = null;
  #dropped = 0;
  /** The first dropped event since the last notice, and the number of dropped events. */
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

  /** Marks the place of missing lines, so that the log does not look complete. */
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

  get refusedEvents(): number {
    return this.#refused;
  }

  /** Resolves when all events so far are acknowledged (true), or after `timeoutMs` (false). */
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
   * Takes as many events as fit into one POST. Signs them last, so that dropped events leave no gap
   * in the numbers.
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

  /** Backs off only after the host has answered once. */
  #nextDelay(delayMs: number): number {
    return this.#hasArrived ? Math.min(delayMs * 2, MAX_RETRY_MS) : delayMs;
  }
}

/** Returns the size in the body of a POST, with a comma. */
function sizeOf(event: SignedInstallEvent): number {
  return Buffer.byteLength(JSON.stringify(event)) + 1;
}
