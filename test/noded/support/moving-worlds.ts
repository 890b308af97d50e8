import { join } from 'node:path';
import { after, before, type TestContext } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Store } from '#shared/store/store.ts';
import {
  contentOf,
  MovingNode,
  MovingNodes,
  placeInstance,
  SOURCE,
  TARGET,
} from './moving-nodes.ts';

/** Two nodes, and an instance without NICs on the first. */
export interface MovingWorld {
  readonly source: MovingNode;
  readonly target: MovingNode;
  readonly instance: InstanceRecord;
  readonly content: Record<string, Buffer>;
}

export interface MovingWorlds {
  /** Opens a world that ends with the test. */
  readonly open: (t: TestContext) => Promise<MovingWorld>;
  /** Returns the store of all worlds. */
  store(): Store;
  /** Returns the folder of all worlds and of other files of the tests. */
  directory(): string;
}

/** Prepares worlds for a test file. All are removed after the last test. */
export function useMovingWorlds(): MovingWorlds {
  let cluster: MovingNodes;
  let store: Store;
  let worlds = 0;
  before(async () => {
    cluster = await MovingNodes.start();
    store = await cluster.openStore();
  });
  after(() => cluster[Symbol.asyncDispose]());

  const open: MovingWorlds['open'] = async (t) => {
    const dir = join(cluster.directory, `world-${(worlds += 1)}`);
    const source = await MovingNode.create(SOURCE, join(dir, 'one'), store);
    const target = await MovingNode.create(TARGET, join(dir, 'two'), store);
    for (const node of [source, target]) node.others = [source, target];
    t.after(async () => {
      for (const node of [source, target]) await node[Symbol.asyncDispose]();
    });
    const placed = await placeInstance(source, `web${worlds}.example.com`);
    // Its NIC's address is free again for the next one.
    const withoutNics = (one: InstanceRecord): InstanceRecord => ({ ...one, nics: [] });
    const instance = await source.instances.update(placed.uuid, withoutNics);
    return { source, target, instance, content: await contentOf(source.disksDir, placed.uuid) };
  };
  return { open, store: () => store, directory: () => cluster.directory };
}
