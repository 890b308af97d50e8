import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findRedisRisks, type RedisFacts } from '#shared/store/redis-risks.ts';

const told = (lines: readonly string[], more: Partial<RedisFacts> = {}): readonly string[] =>
  findRedisRisks({
    info: ['# Memory', ...lines, ''].join('\r\n'),
    appendFsync: 'always',
    outputLimits: 'normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60',
    ...{ replicas: 0, sentinels: null },
    ...more,
  }).map(({ level, message }) => `${level}: ${message}`);

const SAFE = ['maxmemory:0', 'maxmemory_policy:noeviction', 'aof_enabled:1', 'evicted_keys:0'];

test('a Redis that keeps what it was told is no risk', () => {
  assert.deepEqual(told(SAFE), []);
  assert.deepEqual(told(['maxmemory:9', 'maxmemory_policy:volatile-lru', 'evicted_keys:7']), []);
  assert.deepEqual(told(['maxmemory:0', 'maxmemory_policy:allkeys-lru', 'evicted_keys:0']), []);
  assert.deepEqual(told([]), []);
});

test('one that evicts, or has evicted, is named with its policy', () => {
  const evicting = ['maxmemory:1048576', 'maxmemory_policy:allkeys-lfu'];
  assert.match(told([...evicting, 'evicted_keys:0']).join(), /^error: .*more than 1048576.*lfu/);
  assert.match(told([...evicting, 'evicted_keys:3']).join(), /^error: it has evicted 3 keys/);
});

test('one whose disk is full says which writes failed', () => {
  const failed = [...SAFE, 'aof_last_write_status:err', 'rdb_last_bgsave_status:ok'];
  assert.match(told(failed).join(), /^error: .*own disk \(aof_last_write_status\)$/);
});

test('what a crash takes is said, but of one with a replica that has to have it', () => {
  assert.match(told(SAFE, { appendFsync: 'everysec' }).join(), /^warning: .*everysec/);
  assert.match(told(['aof_enabled:0'], { appendFsync: null }).join(), /^warning: .*snapshot/);
  assert.deepEqual(told(['aof_enabled:0'], { replicas: 1 }), []);
  assert.deepEqual(told(SAFE, { appendFsync: null }), []);
});

test('one that cuts off who is as far behind as the streams between nodes allow, says at how many bytes', () => {
  for (const limit of ['pubsub 1048576 0 0', 'pubsub 33554432 1048576 60'])
    assert.match(told(SAFE, { outputLimits: limit }).join(), /^warning: .* 1048576 bytes.*pubsub/);
  for (const outputLimits of ['pubsub 0 0 0', 'normal 1 1 1', null])
    assert.deepEqual(told(SAFE, { outputLimits }), []);
});

test('Sentinels that may take back what was told are named, with the replicas that keep it', () => {
  const told2 = (replicas: number, ...lines: string[]): string =>
    told([...SAFE, ...lines], { replicas, sentinels: { named: 3, all: 3 } }).join();
  assert.match(
    told2(0),
    /^warning: .*lack acknowledged writes \(no replica must confirm a write\)/,
  );
  assert.match(told2(1, 'connected_slaves:3'), /^warning: .*\(1 of 3 replicas must/);
  for (const [replicas, slaves] of [
    [1, 1],
    [1, 2],
    [2, 3],
    [2, 2],
  ] as const)
    // prettier-ignore
    assert.equal(told2(replicas, `connected_slaves:${slaves}`), '');
  assert.deepEqual(told(SAFE, { replicas: 0 }), []);
});

test('Sentinels that the URL does not name are told, where they have to confirm a master', () => {
  const of = (named: number, replicas: number): string =>
    told([...SAFE, 'connected_slaves:2'], { replicas, sentinels: { named, all: 3 } }).join();
  assert.match(of(2, 1), /^warning: its URL names 2 of 3 Sentinels/);
  assert.equal(of(3, 1), '');
  assert.doesNotMatch(of(2, 0), /names 2/);
});
