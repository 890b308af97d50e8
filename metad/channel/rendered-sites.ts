/** Something whose rendered answers can be made again. */
export interface Forgetful {
  forgetRendered(): void;
}

/**
 * Bounds what rendered answers take when there are more instances than ever ask at the same time:
 * those that were rendered first are forgotten first, and rendered again when they are asked for.
 */
export class RenderedSites {
  readonly #limit: number;
  /** Who holds a rendered site, the oldest first. */
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
