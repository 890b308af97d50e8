/** Limits the open uses of a kind per instance. */
export class InstanceSlots {
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * @returns a function that frees the slot, to be called once; undefined when all slots are taken
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
