import { type ReadonlySignal, signal } from '@preact/signals';

/**
 * Holds the items of a list by their key. Readers of `items` render again at most once per frame,
 * however many items change.
 */
export class KeyedList<Key, Item> {
  readonly #byKey = new Map<Key, Item>();
  readonly #items = signal<readonly Item[]>([]);
  readonly #isLoaded = signal(false);
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
    this.#byKey.set(key, item);
    this.#publishSoon();
  }

  delete(key: Key): void {
    if (this.#byKey.delete(key)) this.#publishSoon();
  }

  /** Replaces the list. */
  replace(entries: Iterable<readonly [Key, Item]>): void {
    this.#byKey.clear();
    for (const [key, item] of entries) this.#byKey.set(key, item);
    this.finish();
  }

  /** Removes items that a complete new list does not contain. */
  keepOnly(keys: ReadonlySet<Key>): void {
    for (const key of this.#byKey.keys()) if (!keys.has(key)) this.#byKey.delete(key);
    this.finish();
  }

  finish(): void {
    this.#isLoaded.value = true;
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
