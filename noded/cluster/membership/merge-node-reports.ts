import { setImmediate as turn } from 'node:timers/promises';
import { othersTurn } from '#shared/clock/turns.ts';

/** Sort key and identity of a list item. */
export interface Listed {
  readonly uuid: string;
  readonly name: string;
  readonly primaryNode: string;
}

export interface Telling<Item, Told> {
  /** Returns the node whose report counts for an item. */
  readonly nodeOf: (item: Item) => string;
  /** Yields a node's report of its own items, ordered by name. */
  readonly tell: (node: string) => AsyncGenerator<readonly Told[]>;
  /**
   * Describes an item without a report of its node.
   * @param failure why the node's report ended early
   */
  readonly describeLeft: (item: Item, failure: unknown) => Promise<readonly Told[]>;
}

/** Items per slice: a few milliseconds of work. */
const SLICE = 32;
/** Items between two yields to other tasks: a millisecond of work. */
const LOOKED_AT = 512;

/**
 * Yields all items in order while all nodes report concurrently. A slow or silent node delays only
 * the items after its own, and nothing is collected.
 *
 * @param all ordered by name; additional reported items were made since
 */
export async function* mergeNodeReports<Item extends Listed, Told extends Listed>(
  all: readonly Item[],
  { nodeOf, tell, describeLeft }: Telling<Item, Told>,
): AsyncGenerator<readonly Told[]> {
  const tellers = new Map<string, Teller<Told>>();
  const wanted = new Set<string>();
  // Started when the slice is full, because an earlier failure would be unhandled.
  let slice: (() => readonly Told[] | Promise<readonly Told[]>)[] = [];
  const take = (teller: Teller<Told>, head: Told): void => {
    teller.skip();
    if (wanted.delete(head.uuid)) slice.push(() => [head]);
  };
  const flush = async (): Promise<readonly Told[]> => {
    const begun = slice.map(async (describe) => describe());
    slice = [];
    return (await Promise.all(begun)).flat();
  };
  try {
    for (const [at, item] of all.entries()) {
      const node = nodeOf(item);
      if (!tellers.has(node)) tellers.set(node, new Teller(tell(node)));
      wanted.add(item.uuid);
      if (at % LOOKED_AT === 0) await othersTurn();
    }
    for (const item of all) {
      const teller = tellers.get(nodeOf(item));
      if (teller === undefined) continue;
      while (wanted.has(item.uuid)) {
        const head = await teller.head();
        if (head === undefined || (head.uuid !== item.uuid && head.name >= item.name)) break;
        take(teller, head);
      }
      if (wanted.has(item.uuid)) slice.push(() => leftOf(item, teller.failure));
      if (slice.length < SLICE) continue;
      yield await flush();
      await turn();
    }
    yield await flush();
    // Items that were renamed to a later name meanwhile.
    for (const teller of tellers.values())
      for (let head = await teller.head(); head; head = await teller.head()) take(teller, head);
    yield await flush();
  } finally {
    for (const teller of tellers.values()) teller.end();
  }

  async function leftOf(item: Item, failure: unknown): Promise<readonly Told[]> {
    const known = await describeLeft(item, failure);
    // A renamed item is reported under its new name.
    return known.filter(({ uuid, name }) => name === item.name && wanted.delete(uuid));
  }
}

/** Reads one node's report and prefetches the next slice. */
class Teller<Told> {
  readonly #source: AsyncGenerator<readonly Told[]>;
  #coming: Promise<IteratorResult<readonly Told[]>>;
  #slice: readonly Told[] = [];
  #at = 0;
  #isOver = false;
  /** Reason of an early end. */
  failure: unknown;

  constructor(source: AsyncGenerator<readonly Told[]>) {
    this.#source = source;
    this.#coming = this.#ask();
  }

  /** @returns undefined at the end of the report */
  async head(): Promise<Told | undefined> {
    while (this.#at >= this.#slice.length && !this.#isOver) await this.#read();
    return this.#slice[this.#at];
  }

  skip(): void {
    this.#at += 1;
  }

  end(): void {
    this.#source.return(undefined).catch(() => undefined);
  }

  async #read(): Promise<void> {
    this.#at = 0;
    this.#slice = [];
    try {
      const next = await this.#coming;
      if (next.done === true) this.#isOver = true;
      else this.#slice = next.value;
    } catch (error) {
      this.failure = error;
      this.#isOver = true;
    }
    if (!this.#isOver) this.#coming = this.#ask();
  }

  #ask(): Promise<IteratorResult<readonly Told[]>> {
    const asked = this.#source.next();
    // It may fail before it is awaited.
    asked.catch(() => undefined);
    return asked;
  }
}
