import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import {
  type Listed,
  mergeNodeReports,
} from '../../../../noded/cluster/membership/merge-node-reports.ts';
import { threadStretches } from '../../../lab/thread-time.ts';

const of = (primaryNode: string, name: string, uuid = name): Listed => ({
  uuid,
  name,
  primaryNode,
});

async function* tell(told: readonly Listed[], failure?: Error): AsyncGenerator<readonly Listed[]> {
  for (const each of told) {
    await turn();
    yield [each];
  }
  if (failure !== undefined) throw failure;
}

interface Scene {
  readonly all: readonly Listed[];
  readonly told: Readonly<Record<string, AsyncGenerator<readonly Listed[]>>>;
  readonly left?: (item: Listed, failure: unknown) => Promise<readonly Listed[]>;
}

function merge({ all, told, left }: Scene): AsyncGenerator<readonly Listed[]> {
  return mergeNodeReports(all, {
    nodeOf: ({ primaryNode }) => primaryNode,

    tell: (node) => told[node] ?? tell([]),
    describeLeft: left ?? ((item) => Promise.resolve([{ ...item, primaryNode: 'left' }])),
  });
}

async function gather(scene: Scene): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const slice of merge(scene))
    all.push(...slice.map(({ name, primaryNode }) => `${name} ${primaryNode}`));
  return all;
}

const all = [of('x', 'a'), of('y', 'b'), of('x', 'c'), of('y', 'd')];

test('what nodes tell of their own comes in the order of all names', async () => {
  const told = { x: tell([of('x', 'a'), of('x', 'c')]), y: tell([of('y', 'b'), of('y', 'd')]) };
  assert.deepEqual(await gather({ all, told }), ['a x', 'b y', 'c x', 'd y']);
});

test('what a node says nothing of, or no more since it broke off, stands in its place', async () => {
  const failure = new Error('the connection was lost');
  const told = { x: tell([of('x', 'c')]), y: tell([of('y', 'b')], failure) };
  const heard: unknown[] = [];
  const left: Scene['left'] = (item, reason) => {
    heard.push(item.name, reason);
    return Promise.resolve([{ ...item, primaryNode: 'left' }]);
  };
  assert.deepEqual(await gather({ all, told, left }), ['a left', 'b y', 'c x', 'd left']);
  assert.deepEqual(heard, ['a', undefined, 'd', failure]);
});

test('one that was made since is left out, one that was given another name is told once', async () => {
  const renamed = of('x', 'cc', 'a');
  const told = {
    x: tell([of('x', 'aa'), of('x', 'c'), renamed]),
    y: tell([of('y', 'b'), of('y', 'd')]),
  };
  const left: Scene['left'] = () => Promise.resolve([renamed]);
  assert.deepEqual(await gather({ all, told, left }), ['b y', 'c x', 'd y', 'cc x']);
});

test('rows come before all are known, and no node is asked for more than somebody reads', async (t) => {
  const many = Array.from({ length: 1000 }, (_, at) => of('x', String(at).padStart(4, '0')));
  let taken = 0;
  async function* counted(): AsyncGenerator<readonly Listed[]> {
    for (const each of many) {
      await turn();
      taken += 1;
      yield [each];
    }
  }
  const merged = merge({ all: many, told: { x: counted() } });
  t.after(() => merged.return(undefined));
  const first = await merged.next();
  assert.equal((first.value as readonly Listed[]).length, 32);
  for (let turns = 0; turns < 100; turns += 1) await turn();
  assert.ok(taken < 40, `${taken} were taken`);
});

test('a failure waits for a slow reader, and is no unhandled rejection meanwhile', async (t) => {
  const unhandled = t.mock.fn();
  process.on('unhandledRejection', unhandled);
  t.after(() => process.off('unhandledRejection', unhandled));
  const many = Array.from({ length: 40 }, (_, at) => of('x', String(at).padStart(4, '0')));
  const failure = new Error('the store is away');
  const told = { x: tell(many.slice(0, 33), failure) };
  const merged = merge({ all: many, told, left: () => Promise.reject(failure) });
  assert.equal(((await merged.next()).value as readonly Listed[]).length, 32);
  await turn();
  await turn();
  await assert.rejects(merged.next(), failure);
  assert.equal(unhandled.mock.callCount(), 0);
});

test('others have turns before the first of very many is told', async () => {
  const many = Array.from({ length: 100_000 }, (_, at) =>
    of(`node${at % 100}`, `${at}`.padStart(6, '0')),
  );
  const first = async (): Promise<void> => {
    const list = merge({ all: many, told: {} });
    await list.next();
    await list.return(undefined);
  };
  // The first run is not measured, because it includes compilation.
  await first();
  // Without turns the longest stretch is the whole.
  // Garbage collection lengthens single stretches, so one round of ten is enough.
  const rounds: { readonly allMs: number; readonly longestMs: number }[] = [];
  for (let round = 0; round < 10; round += 1) rounds.push(await threadStretches(first));
  const isShared = rounds.some(({ allMs, longestMs }) => longestMs * 2 < allMs);
  assert.ok(isShared, JSON.stringify(rounds));
});

test('a reader that leaves ends the reports of all nodes', async () => {
  const ended: string[] = [];
  async function* endless(node: string): AsyncGenerator<readonly Listed[]> {
    try {
      for (let at = 0; ; at += 1) {
        await turn();
        yield [of(node, `z${at}`)];
      }
    } finally {
      ended.push(node);
    }
  }
  const merged = merge({ all, told: { x: endless('x'), y: endless('y') } });
  await merged.next();
  await merged.return(undefined);
  for (let turns = 0; turns < 20; turns += 1) await turn();
  assert.deepEqual(ended.toSorted(), ['x', 'y']);
});
