import { randomBytes } from 'node:crypto';

/** A change with its place in the order of all changes. */
export interface Numbered<T> {
  /** `EPOCH-NUMBER`, for Last-Event-ID. */
  readonly id: string;
  readonly change: T;
}

/** Keeps the latest changes, so that readers can continue where they stopped. */
export class ChangeRing<T> {
  readonly #epoch = randomBytes(6).toString('hex');
  readonly #max: number;
  readonly #changes: T[] = [];
  /** Number of changes that were dropped. */
  #dropped = 0;

  /** @param max number of changes to keep */
  constructor(max: number) {
    this.#max = max;
  }

  push(change: T): void {
    this.#changes.push(change);
    if (this.#changes.length <= this.#max) return;
    this.#changes.shift();
    this.#dropped += 1;
  }

  /** The id of the last change. */
  get lastId(): string {
    return `${this.#epoch}-${this.#dropped + this.#changes.length}`;
  }

  /**
   * Returns the change after an id; null if it is the last one; undefined if the next change is
   * unknown: it was dropped, or the id is of another ring.
   */
  after(id: string): Numbered<T> | null | undefined {
    const number = this.#numberOf(id);
    if (number === undefined || number < this.#dropped) return undefined;
    const at = number - this.#dropped;
    if (at > this.#changes.length) return undefined;
    const change = this.#changes[at];
    return change === undefined ? null : { id: `${this.#epoch}-${number + 1}`, change };
  }

  #numberOf(id: string): number | undefined {
    const [, epoch, number] = /^([0-9a-f]+)-(\d{1,15})$/.exec(id) ?? [];
    return epoch === this.#epoch ? Number(number) : undefined;
  }
}
