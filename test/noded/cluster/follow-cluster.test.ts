import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '#shared/log/log.ts';
import { followCluster } from '../../../noded/cluster/follow-cluster.ts';

test('views that could not be made while the store was away are made when it is back, once', async () => {
  const done: string[] = [];
  let isAway = true;
  let restarted: () => Promise<void> = () => Promise.resolve();
  let changed = (): void => undefined;
  const end = followCluster({
    store: {
      watch: (collection, onChange) => {
        assert.equal(collection, 'cluster');
        changed = () => onChange(null);
        return { end: () => void done.push('end'), caughtUp: () => Promise.resolve() };
      },
    },
    services: {
      refresh: () => {
        done.push('refresh');
        return isAway ? Promise.reject(new Error('away')) : Promise.resolve();
      },
    },
    keeper: {
      republishAll: () => {
        done.push('views');
        return Promise.resolve(!isAway);
      },
    },
    metad: { onRestarted: (listener) => void (restarted = listener) },
    logger: silentLogger,
  });
  await restarted();
  changed();
  await turn();
  isAway = false;
  changed();
  await turn();
  changed();
  await turn();
  end();
  assert.deepEqual(done, ['views', 'refresh', 'refresh', 'views', 'refresh', 'end']);
});
