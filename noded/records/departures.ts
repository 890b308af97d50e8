import type { Store, Write } from '#shared/store/store.ts';

const DEPARTURES = 'departures';

/**
 * Notes of who had an instance and has given it away, made in that commit and kept until nothing of
 * it is there any more. Of a record that is gone, they tell one that was removed since from one of
 * which nothing else is left.
 */
export interface Departures {
  hasLeft(uuid: string, node: string): Promise<boolean>;
  /** UUIDs of the instances of which a node may still have something. */
  departedFrom(node: string): Promise<readonly string[]>;
  forgetDeparture(uuid: string, node: string): Promise<void>;
}

/** A note that could not be dropped with its folder must not count for a node that has it again. */
export function planDeparture(uuid: string, from: string, to: string): readonly Write[] {
  const left = { collection: DEPARTURES, id: idOf(uuid, from), expected: 'any' } as const;
  return [{ ...left, value: { schema: 1 } }, drop(idOf(uuid, to))];
}

/** Plans to forget an instance of which only nodes that gave it away still have something. */
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
