import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';

/** Publishes views in the background. */
export class ViewPublisher {
  readonly #show: (uuid: string) => Promise<void>;
  readonly #logger: Logger;
  readonly #publishing = new SerialQueue<string>();
  /** Publications that have not begun. They will show the present state. */
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(show: (uuid: string) => Promise<void>, logger: Logger) {
    this.#show = show;
    this.#logger = logger;
  }

  /** Publishes one view at a time, with at most one more waiting per instance. */
  publish(uuid: string): Promise<void> {
    const waiting = this.#waiting.get(uuid);
    if (waiting !== undefined) return waiting;
    const publishing = this.#publishing.run(uuid, async () => {
      this.#waiting.delete(uuid);
      try {
        await this.#show(uuid);
      } catch (error) {
        // metad gets all views after its restart.
        this.#logger.warn('lifecycle.not-published', { uuid, err: error });
      }
    });
    this.#waiting.set(uuid, publishing);
    return publishing;
  }
}
