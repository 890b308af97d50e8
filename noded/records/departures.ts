import type { Store, Write } from '#shared/store/store.ts';

const DEPARTURES = 'departures';

/**
 * Stores notes of nodes that have given an instance away. The commit of the move writes the note,
 * and it stays until the node has removed its leftovers. If the record is gone, a note shows that
 * the instance was removed after its move. Without a note, the leftovers may be its only copy.
 */
export interface Departures {
  hasLeft(uuid: string, node: string): Promise<boolean>;
  /** Lists the UUIDs of instances of which a node may have leftovers. */
  departedFrom(node: string): Promise<readonly string[]>;
  forgetDeparture(uuid: string, node: string): Promise<void>;
}

/**
 * Plans the note of a move. Drops a stale note of the receiving node: its cleanup may have failed
 * to drop it.
 */
export function planDeparture(uuid: string, from: string, to: string): readonly Write[] {
  const left = { collection: DEPARTURES, id: idOf(uuid, from), expected: 'any' } as const;
  return [{ ...left, value: { schema: 1 } }, drop(idOf(uuid, to))];
}

/** Plans to drop all notes of a forgotten instance: only nodes that gave it away have leftovers. */
export async function planForgotten(store: Store, uuid: string): Promise<readonly Write[]> {
  const ids = await store.ids(DEPARTURES);
  return ids.filter((id) => id.startsWith(idOf(uuid, ''))).map(drop);
}

export function createDepartures(store: Store): Departures {
  return {
    hasLeft: async (uuid, node) => (await store.get(DEPARTURES, idOf(uuid, node))) !== undefined,
    departedFrom: async (node) =>
      (await store.ids(DEPARTURES)).flatMap((id) => {
        const uuid = id.slice(0, id.indexOf('.'));
        return id === idOf(uuid, node) ? uuid : [];
      }),
    forgetDeparture: (uuid, node) => store.commit([drop(idOf(uuid, node))]).then(() => undefined),
  };
}

function drop(id: string): Write {
  return { collection: DEPARTURES, id, expected: 'any', value: undefined };
}

function idOf(uuid: string, node: string): string {
  return `${uuid}.${node}`;
}
