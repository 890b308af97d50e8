/** Runs the tasks of each key serially, in their order, whether earlier ones failed or not. */
export class SerialQueue<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

  async run<T>(key: Key, task: () => Promise<T>): Promise<T> {
    const current = (this.#last.get(key) ?? Promise.resolve()).then(task, task);
    this.#last.set(key, current);
    try {
      return await current;
    } finally {
      if (this.#last.get(key) === current) this.#last.delete(key);
    }
  }
}
