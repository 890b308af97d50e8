import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { createMembership } from '../../../../noded/cluster/membership/membership.ts';

const REMOVED_AT_MS = Date.UTC(2026, 10, 21, 8);

function create(removedAtMs: number | null, publicKey: string | null = 'key') {
  const asked: string[] = [];
  const errors: string[] = [];
  const membership = createMembership(
    { removedAtMs: async (key) => (asked.push(key), removedAtMs) },
    publicKey,
    { ...silentLogger, error: (event) => void errors.push(event) },
  );
  return { membership, asked, errors };
}

test('a removed node says so once, and must not change the store', async () => {
  const { membership, asked, errors } = create(REMOVED_AT_MS);
  membership.requireMember();
  assert.equal(membership.removedAtMs(), null);
  await membership.refresh();
  await membership.refresh();
  assert.deepEqual([asked, errors], [['key'], ['node.removed']]);
  assert.equal(membership.removedAtMs(), REMOVED_AT_MS);
  assert.throws(() => membership.requireMember(), {
    code: 'NODE_REMOVED',
    message: 'this node was removed from its cluster at 2026-11-21T08:00:00.000Z',
    details: { removedAtMs: REMOVED_AT_MS },
  });
});

test('a member asks each time, and a node without a common store never', async () => {
  const { membership, asked, errors } = create(null);
  await membership.refresh();
  await membership.refresh();
  membership.requireMember();
  assert.deepEqual([asked, errors], [['key', 'key'], []]);
  const alone = create(REMOVED_AT_MS, null);
  await alone.membership.refresh();
  alone.membership.requireMember();
  assert.deepEqual(alone.asked, []);
});
