import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFindElsewhere } from '../../../../noded/cluster/placement/find-elsewhere.ts';
import { sampleOs } from '../../../cluster-cli/support/samples.ts';
import { type PeerAnswers, startHttpPeers } from '../../support/http-peers.ts';

const names = async () => ['node1', 'node2', 'node3', 'node4'];
const osOf = (digest: string | null): PeerAnswers[string] => ({
  '/v1/os/debian': sampleOs({ trust: { ...sampleOs().trust, digest } }),
});

for (const [what, answers, expected] of [
  ['the first node that has it', { node2: osOf('a'), node3: osOf('b') }, ['node2', 'a']],
  ['one beside this node', { node1: osOf('own'), node2: osOf('a') }, ['node2', 'a']],
  ['one behind a node without it', { node2: {}, node3: osOf('b') }, ['node3', 'b']],
  ['one behind an invalid definition', { node2: osOf(null), node3: osOf('b') }, ['node3', 'b']],
  ['one behind a silent node', { node2: 'silent', node3: osOf('b') }, ['node3', 'b']],
  ['one behind an offline node', { node2: 'offline', node4: osOf('c') }, ['node4', 'c']],
  ['none', { node1: osOf('own') }, null],
] as const satisfies readonly (readonly [string, PeerAnswers, unknown])[]) {
  test(`a definition is found on other nodes: ${what}`, async (t) => {
    const find = createFindElsewhere(await startHttpPeers(t, answers), { names }, 'node1');
    const expectedNode = expected && { node: expected[0], digest: expected[1] };
    assert.deepEqual(await find('debian'), expectedNode);
  });
}

test('an answer that no release gives is a mistake, not a missing definition', async (t) => {
  const peers = await startHttpPeers(t, { node2: { '/v1/os/debian': { trust: 7 } } });
  await assert.rejects(createFindElsewhere(peers, { names }, 'node1')('debian'), /trust/);
});

test('a single node has no others to ask', async () => {
  const find = createFindElsewhere(null, { names: () => assert.fail('asked') }, 'node1');
  assert.equal(await find('debian'), null);
});
