export interface Forgetful {
  forgetRendered(): void;
}

/**
 * Bounds the memory of rendered answers on a node with more instances than ever ask at the same
 * time. The answers rendered first are dropped first, and rendered again on demand.
 */
export class RenderedSites {
  readonly #limit: number;
  /** Owners of rendered sites, the oldest first. */
  readonly #owners = new Set<Forgetful>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(owner: Forgetful): void {
    this.#owners.add(owner);
    if (this.#owners.size <= this.#limit) return;
    for (const oldest of this.#owners) {
      this.#owners.delete(oldest);
      oldest.forgetRendered();
      return;
    }
  }

  delete(owner: Forgetful): void {
    this.#owners.delete(owner);
  }
}
