import { z } from 'zod';
import { listRecords, parseRecord, type RecordProblems } from '#shared/store/readable-records.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';

export const NODES = 'nodes';
/** Nodes that were removed, by their keys: none of them comes back as what it was. */
const REMOVED = 'removed-nodes';

const nodeRecord = z.object({
  name: z.string(),
  /** Of the node's key, in base64; nodes that are clusters by themselves need none. */
  publicKey: z.string().optional(),
});

const removedNode = z.object({ name: z.string(), removedAtMs: z.number() });

/** The nodes of the cluster, by name. */
export interface NodeRegistry {
  /** Of a node that is a cluster by itself; its name is its own business. */
  registerAlone(name: string): Promise<void>;
  /**
   * @throws AppError CONFLICT when the name belongs to another key, or the key to another name;
   * NODE_REMOVED when it was removed
   */
  register(name: string, publicKey: string): Promise<void>;
  names(): Promise<readonly string[]>;
  /** In base64; undefined when there is no such node. */
  publicKeyOf(name: string): Promise<string | undefined>;
  /** Its name is free then; its key is not taken again. */
  remove(name: string, nowMs: number): Promise<void>;
  /** When the node with this key was removed; null of one that was not. */
  removedAtMs(publicKey: string): Promise<number | null>;
}

export function createNodeRegistry(store: Store, problems: RecordProblems): NodeRegistry {
  const find = async (name: string): Promise<z.infer<typeof nodeRecord> | undefined> => {
    const stored = await store.get(NODES, name);
    return stored && parseRecord(nodeRecord, NODES, stored);
  };
  return {
    registerAlone: async (name) => {
      await store.commit([{ collection: NODES, id: name, expected: 'any', value: { name } }]);
    },
    register: async (name, publicKey) => {
      const nodes = await listRecords(store, NODES, nodeRecord, problems);
      refuseSecondName(name, nodes.find((node) => node.publicKey === publicKey)?.name);
      try {
        await store.commit([
          { collection: NODES, id: name, expected: 'absent', value: { name, publicKey } },
          // Expected, and not written: another node may remove this one at the same time.
          { collection: REMOVED, id: idOfKey(publicKey), expected: 'absent', value: undefined },
        ]);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        if (error.collection === REMOVED) {
          throw new AppError('NODE_REMOVED', `node '${name}' was removed from its cluster`, {
            details: { node: name },
            hint: 'start gnt-noded again: it tells what can be done',
            cause: error,
          });
        }
        if ((await find(name))?.publicKey === publicKey) return;
        throw new AppError('CONFLICT', `there is another node '${name}' in this cluster`, {
          details: { node: name },
          hint: `give this one another name with --node; if that one is gone for good, run on a third: gnt-node remove ${name}`,
          cause: error,
        });
      }
    },
    names: async () =>
      (await listRecords(store, NODES, nodeRecord, problems)).map(({ name }) => name),
    publicKeyOf: async (name) => (await find(name))?.publicKey,
    remove: async (name, nowMs) => {
      const publicKey = (await find(name))?.publicKey;
      const writes: Write[] = [{ collection: NODES, id: name, expected: 'any', value: undefined }];
      if (publicKey !== undefined) {
        const id = idOfKey(publicKey);
        // That of the name begins anew with each node that has it; this is of the one that was found.
        const expected = (await store.get(REMOVED, id))?.revision ?? 'absent';
        const value = { name, removedAtMs: nowMs };
        writes.push({ collection: REMOVED, id, expected, value });
      }
      try {
        await store.commit(writes);
      } catch (error) {
        // Somebody else removed it, and the name may be another node's by now.
        if (!(error instanceof StoreConflict)) throw error;
      }
    },
    removedAtMs: async (publicKey) => {
      const stored = await store.get(REMOVED, idOfKey(publicKey));
      return stored === undefined ? null : parseRecord(removedNode, REMOVED, stored).removedAtMs;
    },
  };
}

/** In hexadecimal: ids are shown and typed. */
function idOfKey(publicKey: string): string {
  return Buffer.from(publicKey, 'base64').toString('hex');
}

function refuseSecondName(name: string, former: string | undefined): void {
  if (former === undefined || former === name) return;
  throw new AppError('CONFLICT', `this node is '${former}' in its cluster, not '${name}'`, {
    details: { node: former },
    hint: `start it with --node ${former}; a new name needs, on another node: gnt-node remove ${former}`,
  });
}
