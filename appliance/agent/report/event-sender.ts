import { setTimeout as sleep } from 'node:timers/promises';
import { type InstallEvent, MAX_EVENTS_PER_BATCH } from '#shared/contract/install-event.ts';
import { messageOf } from '#shared/errors/app-error.ts';

/** Events that wait for a slow or absent host; log lines beyond that are dropped, oldest kept, and counted. */
const MAX_WAITING_EVENTS = 20_000;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 2_000;

export interface EventSenderOptions {
  /** Posts one batch. Resolves with the HTTP status; rejects when there was no answer. */
  readonly post: (batch: readonly InstallEvent[]) => Promise<number>;
  /** Told about batches that the host refused; for the serial console. */
  readonly complain: (text: string) => void;
}

/**
 * Sends events in order, in batches, each until the host has acknowledged it.
 *
 * INVARIANTS: one batch is in flight at a time; an event leaves the queue only when its batch was answered with 2xx, or with a
 * 4xx that no repetition would change.
 */
export class EventSender {
  readonly #options: EventSenderOptions;
  readonly #waiting: InstallEvent[] = [];
  #sending: Promise<void> | null = null;
  #dropped = 0;

  constructor(options: EventSenderOptions) {
    this.#options = options;
  }

  send(event: InstallEvent): void {
    if (this.#waiting.length >= MAX_WAITING_EVENTS && event.type === 'log') {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(event);
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = null;
    });
  }

  get droppedEvents(): number {
    return this.#dropped;
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
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_EVENTS_PER_BATCH);
      await this.#deliver(batch);
      this.#waiting.splice(0, batch.length);
    }
  }

  async #deliver(batch: readonly InstallEvent[]): Promise<void> {
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      const answer = await this.#options.post(batch).catch((error: unknown) => messageOf(error));
      if (typeof answer === 'number') {
        if (answer >= 200 && answer < 300) return;
        if (answer >= 400 && answer < 500 && answer !== 429 && answer !== 408) {
          this.#options.complain(`host refused ${batch.length} events with status ${answer}`);
          return;
        }
      }
      await sleep(delayMs);
    }
  }
}
