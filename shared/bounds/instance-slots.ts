/** Bounds how much of a kind each instance may have open at a time. */
export class InstanceSlots {
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * @returns what gives the slot back, to be called once; undefined when the instance has none left
   */
  take(uuid: string): (() => void) | undefined {
    const count = this.#taken.get(uuid) ?? 0;
    if (count >= this.#max) return undefined;
    this.#taken.set(uuid, count + 1);
    return () => this.#giveBack(uuid);
  }

  #giveBack(uuid: string): void {
    const rest = (this.#taken.get(uuid) ?? 0) - 1;
    if (rest > 0) this.#taken.set(uuid, rest);
    else this.#taken.delete(uuid);
  }
}
