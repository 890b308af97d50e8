import { type ReadonlySignal, signal } from '@preact/signals';

/** Receives the items of a list during a read. */
interface ListReader<Key, Item> {
  readonly add: (key: Key, item: Item) => void;
  /** Removes the items that the list does not contain. */
  readonly finish: () => void;
}

/**
 * Holds the items of a list by their key. Readers of `items` render again at most once per frame,
 * however many items change.
 */
export class KeyedList<Key, Item> {
  readonly #byKey = new Map<Key, Item>();
  readonly #items = signal<readonly Item[]>([]);
  readonly #isLoaded = signal(false);
  /** Keys that changed since the current read began; null between reads. */
  #changed: Set<Key> | null = null;
  #isScheduled = false;

  /** All items, in the order of their arrival. */
  get items(): ReadonlySignal<readonly Item[]> {
    return this.#items;
  }

  /** False until the first list has arrived. */
  get isLoaded(): ReadonlySignal<boolean> {
    return this.#isLoaded;
  }

  set(key: Key, item: Item): void {
    this.#changed?.add(key);
    this.#byKey.set(key, item);
    this.#publishSoon();
  }

  delete(key: Key): void {
    this.#changed?.add(key);
    if (this.#byKey.delete(key)) this.#publishSoon();
  }

  /**
   * Starts to read the list again, which ends an earlier read. A change that arrives meanwhile is
   * newer than the item of the list.
   */
  startReading(): ListReader<Key, Item> {
    const changed = new Set<Key>();
    const found = new Set<Key>();
    this.#changed = changed;
    return {
      add: (key, item) => {
        if (this.#changed !== changed) return;
        found.add(key);
        if (changed.has(key)) return;
        this.#byKey.set(key, item);
        this.#publishSoon();
      },
      finish: () => {
        if (this.#changed !== changed) return;
        for (const key of this.#byKey.keys())
          if (!found.has(key) && !changed.has(key)) this.#byKey.delete(key);
        this.#changed = null;
        this.#isLoaded.value = true;
        this.#publish();
      },
    };
  }

  /** Forgets all items, and ends a read. */
  clear(): void {
    this.#changed = null;
    this.#byKey.clear();
    this.#isLoaded.value = false;
    this.#publish();
  }

  #publishSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#publish();
    });
  }

  #publish(): void {
    this.#items.value = [...this.#byKey.values()];
  }
}
