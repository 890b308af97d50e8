import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '#shared/log/log.ts';
import { followCluster } from '../../../../noded/cluster/membership/follow-cluster.ts';

test('views that could not be made while the store was away are made when it is back, once', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const done: string[] = [];
  let isAway = true;
  let hasChanged = false;
  let restarted: () => Promise<void> = () => Promise.resolve();
  let changed = (): void => undefined;
  const end = followCluster({
    store: {
      watch: (collection, onChange) => {
        if (collection === 'cluster') changed = () => onChange(null);
        return {
          end: () => void done.push(`end ${collection}`),
          caughtUp: () => Promise.resolve(),
        };
      },
    },
    relays: { refresh: async () => undefined },
    services: {
      refresh: () => {
        done.push('refresh');
        return isAway ? Promise.reject(new Error('away')) : Promise.resolve();
      },
    },
    identities: {
      hasChanged: () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(hasChanged)),
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
  // Nodes of the former release tell of no change.
  t.mock.timers.tick(60_000);
  await turn();
  // A renewed identity key signs from now on.
  hasChanged = true;
  t.mock.timers.tick(60_000);
  await turn();
  end();
  t.mock.timers.tick(60_000);
  assert.deepEqual(done, [
    ...['views', 'refresh', 'views', 'refresh', 'refresh', 'refresh', 'views', 'refresh'],
    ...['end cluster', 'end identity'],
  ]);
});

test('a revoked identity reaches the views while the ports of services cannot be opened', async () => {
  const done: string[] = [];
  let changed = (): void => undefined;
  const end = followCluster({
    store: {
      watch: (_collection, onChange) => {
        changed = () => onChange(null);
        return { end: () => undefined, caughtUp: () => Promise.resolve() };
      },
    },
    relays: { refresh: async () => undefined },
    services: { refresh: () => Promise.reject(new Error('nft')) },
    identities: { hasChanged: () => Promise.resolve(true) },
    keeper: { republishAll: () => Promise.resolve(done.push('views') > 0) },
    metad: { onRestarted: () => undefined },
    logger: silentLogger,
  });
  changed();
  await turn();
  end();
  assert.deepEqual(done, ['views']);
});
