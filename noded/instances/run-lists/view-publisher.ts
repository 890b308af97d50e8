import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';

/** Shows guests what there is, and asks nobody to wait for it but who wants to. */
export class ViewPublisher {
  readonly #show: (uuid: string) => Promise<void>;
  readonly #logger: Logger;
  readonly #publishing = new SerialQueue<string>();
  /** Those that have not begun: they will show what is then, whoever asks for them meanwhile. */
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(show: (uuid: string) => Promise<void>, logger: Logger) {
    this.#show = show;
    this.#logger = logger;
  }

  /**
   * One at a time, and at most one more waits: a guest that says much makes nobody wait for longer.
   */
  publish(uuid: string): Promise<void> {
    const waiting = this.#waiting.get(uuid);
    if (waiting !== undefined) return waiting;
    const publishing = this.#publishing.run(uuid, async () => {
      this.#waiting.delete(uuid);
      try {
        await this.#show(uuid);
      } catch (error) {
        // A metad that is away is told everything when it is back.
        this.#logger.warn('lifecycle.not-published', { uuid, err: error });
      }
    });
    this.#waiting.set(uuid, publishing);
    return publishing;
  }
}
