import { abortable } from '#shared/abort/abortable.ts';

export interface HeldLocks {
  release(): void;
}

interface Waiter {
  readonly owner: number;
  readonly names: readonly string[];
  readonly grant: () => void;
}

/**
 * Named locks for jobs, first come first served. A request takes all its names at once, so no job
 * waits while it holds locks.
 *
 * INVARIANTS: a name has at most one owner; a waiter is overtaken only by requests that share no
 * name with it.
 */
export class LockTable {
  readonly #owners = new Map<string, number>();
  readonly #waiters: Waiter[] = [];

  /**
   * Returns the owners that a request for these names would wait for: holders, and earlier waiters
   * for the same names.
   */
  blockersOf(names: readonly string[], before?: number): readonly number[] {
    const blockers = new Set<number>();
    for (const name of names) {
      const owner = this.#owners.get(name);
      if (owner !== undefined) blockers.add(owner);
    }
    for (const waiter of this.#waiters) {
      if (waiter.owner === before) break;
      if (waiter.names.some((name) => names.includes(name))) blockers.add(waiter.owner);
    }
    return [...blockers].sort((a, b) => a - b);
  }

  /** @throws the signal's reason if it aborts during the wait */
  async acquire(owner: number, names: readonly string[], signal: AbortSignal): Promise<HeldLocks> {
    signal.throwIfAborted();
    if (this.blockersOf(names).length > 0) await this.#wait(owner, names, signal);
    else this.#take(owner, names);
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        for (const name of names) this.#owners.delete(name);
        this.#grantNext();
      },
    };
  }

  #take(owner: number, names: readonly string[]): void {
    for (const name of names) this.#owners.set(name, owner);
  }

  async #wait(owner: number, names: readonly string[], signal: AbortSignal): Promise<void> {
    await abortable<void>(signal, (resolve) => {
      const grant = (): void => {
        this.#take(owner, names);
        resolve();
      };
      const waiter: Waiter = { owner, names, grant };
      this.#waiters.push(waiter);
      return () => {
        const index = this.#waiters.indexOf(waiter);
        if (index >= 0) this.#waiters.splice(index, 1);
        this.#grantNext();
      };
    });
  }

  #grantNext(): void {
    const reserved = new Set<string>();
    for (const waiter of [...this.#waiters]) {
      const isBlocked = waiter.names.some((name) => this.#owners.has(name) || reserved.has(name));
      if (isBlocked) {
        for (const name of waiter.names) reserved.add(name);
        continue;
      }
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.grant();
    }
  }
}
