import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '#shared/log/log.ts';
import { RunningElsewhere } from '../../../../noded/cluster/membership/running-elsewhere.ts';
import { UnreachableNode } from '../../../../noded/cluster/peers/ask-peer.ts';

test(
  'a node that nobody tells of is found; one that is mute is asked ever less often',
  { timeout: 30_000 },
  async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const asked = new Map<string, number>();
    const answered = new EventEmitter();
    const names = ['own', 'mute', 'off'];
    const offline = new Set(['off']);
    const running = new RunningElsewhere({
      nodeName: 'own',
      peers: {
        open: (node) => {
          asked.set(node, (asked.get(node) ?? 0) + 1);
          answered.emit('asked');
          return Promise.reject(new UnreachableNode(node, { isThere: node === 'mute' }));
        },
      },
      nodes: {
        list: () =>
          Promise.resolve(
            names.map((name) => ({ name, flags: { drained: false, offline: offline.has(name) } })),
          ),
      },
      store: {
        watch: (_collection, onChanges) => {
          queueMicrotask(() => onChanges(null));
          return { caughtUp: () => Promise.resolve(), end: () => undefined };
        },
      },
      logger: silentLogger,
    });
    t.after(() => running[Symbol.asyncDispose]());
    await turn();
    assert.deepEqual([...asked.keys()], ['mute']);
    names.push('gone');
    t.mock.timers.tick(60_000);
    while ((asked.get('gone') ?? 0) < 4) await once(answered, 'asked');
    // After two seconds, and after four more; the other one each second.
    const mute = asked.get('mute') ?? 0;
    assert.ok(mute === 2 || mute === 3, `${mute} times`);
    // A node marked offline receives no requests, also after a later mark.
    assert.equal(asked.get('off'), undefined);
    offline.add('gone');
    t.mock.timers.tick(60_000);
    await turn();
    const facts = await running.facts();
    assert.deepEqual(
      ['off', 'gone', 'mute'].map((node) => facts.get(node)?.state),
      ['offline', 'offline', 'silent'],
    );
  },
);

test('a node that runs and is marked offline says so in its log, once, until the mark is taken back', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const told: unknown[] = [];
  const tell = (event: string, fields?: object): void =>
    void told.push([event, fields && 'node' in fields && fields.node]);
  let offline = true;
  const running = new RunningElsewhere({
    nodeName: 'own',
    peers: { open: () => Promise.reject(new Error('nobody is asked')) },
    nodes: {
      list: () => Promise.resolve([{ name: 'own', flags: { drained: false, offline } }]),
    },
    store: { watch: () => ({ caughtUp: () => Promise.resolve(), end: () => undefined }) },
    logger: { ...silentLogger, warn: tell, info: tell },
  });
  t.after(() => running[Symbol.asyncDispose]());
  for (const mark of [true, true, false, false]) {
    offline = mark;
    t.mock.timers.tick(60_000);
    await running.facts();
  }
  assert.deepEqual(told, [
    ['node.offline', 'own'],
    ['node.online', 'own'],
  ]);
});
