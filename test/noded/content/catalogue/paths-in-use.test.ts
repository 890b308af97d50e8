import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listPathsInUse } from '../../../../noded/content/catalogue/paths-in-use.ts';

test('an image is in use by instances and by jobs that have not ended, and by nothing else', async () => {
  const used = await listPathsInUse({
    instances: { list: () => Promise.resolve([{ osImage: '/a' }, { osImage: null }]) },
    jobs: {
      list: () =>
        Promise.resolve([
          { input: { osImage: '/b' }, endedAtMs: null },
          { input: { osImage: '/c' }, endedAtMs: 1 },
          { input: {}, endedAtMs: null },
        ]),
    },
  });
  assert.deepEqual([...used].toSorted(), ['/a', '/b']);
});
