import { z } from 'zod';
import {
  changeNodeFlags,
  NO_FLAGS,
  type NodeFlagChanges,
  type NodeFlags,
} from '#shared/contract/node-flags.ts';
import { listRecords, parseRecord, type RecordProblems } from '#shared/store/readable-records.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';

export const NODES = 'nodes';
/** Removed nodes by their keys. A removed key is never accepted again. */
const REMOVED = 'removed-nodes';

const nodeRecord = z.object({
  name: z.string(),
  /** Public half of its key, in base64; absent on a single-node cluster. */
  publicKey: z.string().optional(),
  drained: z.boolean().optional(),
  offline: z.boolean().optional(),
});
type NodeRecord = z.infer<typeof nodeRecord>;

/** Addresses of data links. Nodes of earlier releases would drop a field of the node's record. */
const DATA_LINKS = 'data-links';

const dataLink = z.object({
  /** Key of the node that announced this. A later node of the same name has another key. */
  publicKey: z.string(),
  host: z.string().max(255),
  port: z.number().int().min(1).max(65_535),
  /** SHA-256 of the public key of its certificate, in hexadecimal. */
  fingerprint: z.string().max(64),
});
/** Where other nodes reach a node, and the key by which they recognise it. */
export type DataAddress = Omit<z.infer<typeof dataLink>, 'publicKey'>;

const removedNode = z.object({ name: z.string(), removedAtMs: z.number() });

export function noNode(node: string, names: readonly string[]): AppError {
  return new AppError('NODE_NOT_FOUND', `there is no node '${node}' in this cluster`, {
    details: { node },
    hint: `The nodes are ${names.join(', ')}.`,
  });
}

export interface ListedFlags {
  readonly name: string;
  readonly flags: NodeFlags;
}

export function createNodeRegistry(store: Store, problems: RecordProblems) {
  const find = async (name: string): Promise<NodeRecord | undefined> => {
    const stored = await store.get(NODES, name);
    return stored && parseRecord(nodeRecord, NODES, stored);
  };
  return {
    /** Registers the node of a single-node cluster, under any name. */
    registerAlone: async (name: string): Promise<void> => {
      // Replace an unreadable record.
      const found = await find(name).catch((error: unknown) => {
        if (isAppError(error, 'RECORD_UNREADABLE')) return undefined;
        throw error;
      });
      const value = found ?? { name };
      await store.commit([{ collection: NODES, id: name, expected: 'any', value }]);
    },
    /**
     * Registers a node with its key.
     * @throws AppError CONFLICT: the name belongs to another key, or the key to another name;
     * NODE_REMOVED: the node was removed
     */
    register: async (name: string, publicKey: string): Promise<void> => {
      const nodes = await listRecords(store, NODES, nodeRecord, problems);
      refuseSecondName(name, nodes.find((node) => node.publicKey === publicKey)?.name);
      try {
        await store.commit([
          { collection: NODES, id: name, expected: 'absent', value: { name, publicKey } },
          // This only checks: another node may remove this one at the same time.
          { collection: REMOVED, id: idOfKey(publicKey), expected: 'absent', value: undefined },
        ]);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        if (error.collection === REMOVED) {
          throw new AppError('NODE_REMOVED', `node '${name}' was removed from its cluster`, {
            details: { node: name },
            hint: 'Start gnt-noded again: it prints the options that remain.',
            cause: error,
          });
        }
        if ((await find(name))?.publicKey === publicKey) return;
        throw new AppError('CONFLICT', `the cluster already has a node '${name}'`, {
          details: { node: name },
          hint: `Start this node with another name (--node). If the other node is gone for good, run on a third node: gnt-node remove ${name}`,
          cause: error,
        });
      }
    },
    names: async (): Promise<readonly string[]> =>
      (await listRecords(store, NODES, nodeRecord, problems)).map(({ name }) => name),
    list: async (): Promise<readonly ListedFlags[]> =>
      (await listRecords(store, NODES, nodeRecord, problems)).map((node) => ({
        name: node.name,
        flags: flagsIn(node),
      })),
    /** Returns the flags of a node; none for an unknown one. */
    flagsOf: async (name: string): Promise<NodeFlags> => flagsIn(await find(name)),
    /** @throws AppError NODE_NOT_FOUND */
    changeFlags: async (name: string, changes: NodeFlagChanges): Promise<NodeFlags> => {
      for (;;) {
        const stored = await store.get(NODES, name);
        if (stored === undefined) throw nodeNotFound(name);
        const node = parseRecord(nodeRecord, NODES, stored);
        const flags = changeNodeFlags(flagsIn(node), changes);
        const value = { ...node, ...flags };
        try {
          await store.commit([{ collection: NODES, id: name, expected: stored.revision, value }]);
          return flags;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    /** Returns the public key in base64; undefined for an unknown node. */
    publicKeyOf: async (name: string): Promise<string | undefined> => (await find(name))?.publicKey,
    /** Tells the other nodes where this node listens; null if it does not. */
    announceDataAddress: async (
      name: string,
      publicKey: string,
      address: DataAddress | null,
    ): Promise<void> => {
      const value = address === null ? undefined : { publicKey, ...address };
      await store.commit([{ collection: DATA_LINKS, id: name, expected: 'any', value }]);
    },
    /** Returns undefined for an unknown node, and for a node without such an address. */
    dataAddressOf: async (name: string): Promise<DataAddress | undefined> => {
      const [node, stored] = await Promise.all([find(name), store.get(DATA_LINKS, name)]);
      if (node?.publicKey === undefined || stored === undefined) return undefined;
      // A damaged announcement counts as none: streams go through the store.
      const { data } = dataLink.safeParse(stored.value);
      if (data?.publicKey !== node.publicKey) return undefined;
      return { host: data.host, port: data.port, fingerprint: data.fingerprint };
    },
    /** Removes a node. Its name becomes free, but its key stays refused. */
    remove: async (name: string, nowMs: number): Promise<void> => {
      const publicKey = (await find(name))?.publicKey;
      const writes: Write[] = [NODES, DATA_LINKS].map((collection) => {
        return { collection, id: name, expected: 'any', value: undefined };
      });
      if (publicKey !== undefined) {
        const id = idOfKey(publicKey);
        // The node's own revision is not enough: another node may have taken the name. Expect the
        // revision of the key that was read.
        const expected = (await store.get(REMOVED, id))?.revision ?? 'absent';
        const value = { name, removedAtMs: nowMs };
        writes.push({ collection: REMOVED, id, expected, value });
      }
      try {
        await store.commit(writes);
      } catch (error) {
        // Another remover was faster, and a new node may have the name now.
        if (!(error instanceof StoreConflict)) throw error;
      }
    },
    /** Returns when the node with this key was removed; null if it was not. */
    removedAtMs: async (publicKey: string): Promise<number | null> => {
      const stored = await store.get(REMOVED, idOfKey(publicKey));
      return stored === undefined ? null : parseRecord(removedNode, REMOVED, stored).removedAtMs;
    },
  };
}

export type NodeRegistry = ReturnType<typeof createNodeRegistry>;

function flagsIn(node: NodeRecord | undefined): NodeFlags {
  return {
    drained: node?.drained ?? NO_FLAGS.drained,
    offline: node?.offline ?? NO_FLAGS.offline,
  };
}

function nodeNotFound(name: string): AppError {
  return new AppError('NODE_NOT_FOUND', `there is no node '${name}' in this cluster`, {
    details: { node: name },
    hint: 'gnt-node list shows the nodes',
  });
}

/** Returns the key in hexadecimal: ids are shown and typed. */
function idOfKey(publicKey: string): string {
  return Buffer.from(publicKey, 'base64').toString('hex');
}

function refuseSecondName(name: string, former: string | undefined): void {
  if (former === undefined || former === name) return;
  throw new AppError('CONFLICT', `this node is '${former}' in its cluster, not '${name}'`, {
    details: { node: former },
    hint: `Start it with --node ${former}. For a new name, run on another node: gnt-node remove ${former}`,
  });
}
