import { setImmediate as turn } from 'node:timers/promises';
import { othersTurn } from '#shared/clock/turns.ts';

/** What the order of a list and the place of each in it is known by. */
export interface Listed {
  readonly uuid: string;
  readonly name: string;
  readonly primaryNode: string;
}

export interface Telling<Item, Told> {
  /** Whose words count for it. */
  readonly nodeOf: (item: Item) => string;
  /** What a node tells of its own, in the order of names. */
  readonly tell: (node: string) => AsyncGenerator<readonly Told[]>;
  /**
   * What is known of one that its node says nothing of.
   * @param failure why, where the node's words broke off
   */
  readonly describeLeft: (item: Item, failure: unknown) => Promise<readonly Told[]>;
}

/** Items that are told at a time: a few milliseconds of work. */
const SLICE = 32;
/** Items that are looked at before others have their turn: a millisecond of work. */
const LOOKED_AT = 512;

/**
 * All of a list in its order, while each node tells its part at the same time: one that is slow, or
 * silent, keeps back what comes after what it has, and nothing is collected.
 *
 * @param all in the order of names; what a node tells beyond it was made since
 */
export async function* mergeNodeReports<Item extends Listed, Told extends Listed>(
  all: readonly Item[],
  { nodeOf, tell, describeLeft }: Telling<Item, Told>,
): AsyncGenerator<readonly Told[]> {
  const tellers = new Map<string, Teller<Told>>();
  const wanted = new Set<string>();
  // Begun when the slice is full: nobody would hear of a failure before.
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
    // Those that were given a later name meanwhile.
    for (const teller of tellers.values())
      for (let head = await teller.head(); head; head = await teller.head()) take(teller, head);
    yield await flush();
  } finally {
    for (const teller of tellers.values()) teller.end();
  }

  async function leftOf(item: Item, failure: unknown): Promise<readonly Told[]> {
    const known = await describeLeft(item, failure);
    // One that has another name by now is told by it.
    return known.filter(({ uuid, name }) => name === item.name && wanted.delete(uuid));
  }
}

/** One node's words, of which the next ones are on their way while others are listened to. */
class Teller<Told> {
  readonly #source: AsyncGenerator<readonly Told[]>;
  #coming: Promise<IteratorResult<readonly Told[]>>;
  #slice: readonly Told[] = [];
  #at = 0;
  #isOver = false;
  /** Why it broke off. */
  failure: unknown;

  constructor(source: AsyncGenerator<readonly Told[]>) {
    this.#source = source;
    this.#coming = this.#ask();
  }

  /** @returns undefined when there is nothing more */
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
    // It may fail while others are listened to, and nobody awaits it yet.
    asked.catch(() => undefined);
    return asked;
  }
}
