import assert from 'node:assert/strict';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { joinHosts, type JoinedHost } from '../../bench/support/joined-hosts.ts';
import { startRedis } from '../../noded/support/redis-server.ts';
import { addOs, succeed } from './ask-nodes.ts';

/** Two nodes of a cluster, each in a network namespace. They reach Redis over its socket. */
export interface LinkedNodes {
  readonly hosts: readonly [JoinedHost, JoinedHost];
  readonly labs: readonly [Lab, Lab];
  /** Starts both, and adds the trusted OS definition `both`. */
  start(...options: readonly [readonly string[], readonly string[]]): Promise<void>;
  /** Stops both, and checks that they leave nothing. */
  end(): Promise<void>;
}

export async function linkNodes(): Promise<LinkedNodes> {
  const used = new AsyncDisposableStack();
  const hosts = await joinHosts(used);
  const redis = await startRedis({ appendOnly: true });
  used.defer(() => redis.stop());
  const [left, right] = hosts;
  const labs = await Promise.all([
    createLab('gnt-ln1', () => left.programs),
    createLab('gnt-ln2', () => right.programs),
  ]);
  const [one, two] = labs;
  const url = `unix:${redis.socket}`;
  await succeed(one, 'gnt-cluster', 'init', '--store', url, 'gnt.example.com');
  const { clusterKeyFile } = one.paths;
  await succeed(two, 'gnt-cluster', 'init', '--store', url, '--cluster-key', clusterKeyFile);
  return {
    hosts,
    labs,
    start: async (ofOne, ofTwo) => {
      await Promise.all([one.startNode(...ofOne), two.startNode(...ofTwo)]);
      for (const lab of labs) await addOs(lab, 'both', ['exit 0']);
      await succeed(one, 'gnt-os', 'trust', 'both');
    },
    end: async () => {
      await Promise.all(labs.map((lab) => lab.stopNode()));
      const leftovers = (await Promise.all(labs.map((lab) => lab.findLeftovers()))).flat();
      await Promise.all(labs.map((lab) => lab.dispose()));
      await used.disposeAsync();
      assert.deepEqual(leftovers, []);
    },
  };
}
