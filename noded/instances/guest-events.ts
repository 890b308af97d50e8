import type { MetadEvent } from '#shared/contract/metad-control.ts';

type Listener = (event: MetadEvent['event']) => void;

/** Hands what guests said to whoever waits for it, by instance. */
export class GuestEvents {
  readonly #listeners = new Map<string, Set<Listener>>();

  /** @returns ends the subscription */
  subscribe(uuid: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(uuid) ?? new Set();
    this.#listeners.set(uuid, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(uuid);
    };
  }

  dispatch(event: MetadEvent): void {
    for (const listener of this.#listeners.get(event.instance) ?? []) listener(event.event);
  }
}
