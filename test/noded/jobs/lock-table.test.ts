import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { LockTable, type HeldLocks } from '../../../noded/jobs/lock-table.ts';

const never = new AbortController().signal;

/** Requests locks and remembers whether they have been granted. */
function request(table: LockTable, owner: number, names: readonly string[], signal = never) {
  const state: { held: HeldLocks | undefined; failure: unknown } = {
    held: undefined,
    failure: undefined,
  };
  table.acquire(owner, names, signal).then(
    (held) => (state.held = held),
    (error: unknown) => (state.failure = error),
  );
  return state;
}

test('gives a free lock at once and a taken one when it is given back', async () => {
  const table = new LockTable();
  const first = request(table, 1, ['a']);
  const second = request(table, 2, ['a']);
  await turn();
  assert.ok(first.held);
  assert.equal(second.held, undefined);
  first.held.release();
  await turn();
  assert.ok(second.held);
});

test('takes all names of a request or none: a waiter holds nothing meanwhile', async () => {
  const table = new LockTable();
  const holder = request(table, 1, ['a']);
  const both = request(table, 2, ['a', 'b']);
  await turn();
  assert.deepEqual(table.blockersOf(['b']), [2], 'a later request for b queues behind the waiter');
  holder.held?.release();
  await turn();
  assert.ok(both.held);
  assert.deepEqual(table.blockersOf(['a', 'b']), [2]);
});

test('does not let a later request overtake an earlier one for the same name', async () => {
  const table = new LockTable();
  const holder = request(table, 1, ['a']);
  const both = request(table, 2, ['a', 'b']);
  const late = request(table, 3, ['b']);
  await turn();
  assert.equal(late.held, undefined, 'b is free, but the second request came first');
  holder.held?.release();
  await turn();
  assert.ok(both.held);
  assert.equal(late.held, undefined);
  both.held.release();
  await turn();
  assert.ok(late.held);
});

test('lets requests that share no name pass each other', async () => {
  const table = new LockTable();
  request(table, 1, ['a']);
  request(table, 2, ['a']);
  const other = request(table, 3, ['b']);
  await turn();
  assert.ok(other.held);
});

test('a waiter that is aborted fails with the reason and frees those behind it', async () => {
  const table = new LockTable();
  request(table, 1, ['a']);
  const controller = new AbortController();
  const waiting = request(table, 2, ['a', 'b'], controller.signal);
  const behind = request(table, 3, ['b']);
  await turn();
  const reason = new Error('cancelled');
  controller.abort(reason);
  await turn();
  assert.equal(waiting.failure, reason);
  assert.ok(behind.held);
  assert.deepEqual(table.blockersOf(['a']), [1]);
});

test('an aborted signal never takes a lock', async () => {
  const table = new LockTable();
  await assert.rejects(table.acquire(1, ['a'], AbortSignal.abort(new Error('no'))), /no/);
  assert.deepEqual(table.blockersOf(['a']), []);
});

test('a second release of the same locks does not free those of the next owner', async () => {
  const table = new LockTable();
  const first = request(table, 1, ['a']);
  const second = request(table, 2, ['a']);
  await turn();
  first.held?.release();
  first.held?.release();
  await turn();
  assert.ok(second.held);
  assert.deepEqual(table.blockersOf(['a']), [2]);
});

test('a request that names a lock twice gets it once', async () => {
  const table = new LockTable();
  const twice = request(table, 1, ['a', 'a']);
  await turn();
  assert.ok(twice.held);
  twice.held.release();
  assert.deepEqual(table.blockersOf(['a']), []);
});

test('names the holders and the earlier waiters that a request would wait for', async () => {
  const table = new LockTable();
  request(table, 7, ['a']);
  request(table, 8, ['a', 'b']);
  await turn();
  assert.deepEqual(table.blockersOf(['b']), [8]);
  assert.deepEqual(table.blockersOf(['a', 'c']), [7, 8]);
  assert.deepEqual(table.blockersOf(['c']), []);
});

test('under any order of requests, releases and aborts: one owner per name, no overtaking, nobody forgotten', async () => {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 3 });
  const step = fc.oneof(
    fc.record({ type: fc.constant('acquire' as const), names }),
    fc.record({ type: fc.constant('release' as const), pick: fc.nat() }),
    fc.record({ type: fc.constant('abort' as const), pick: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const table = new LockTable();
      const requests: {
        owner: number;
        names: readonly string[];
        controller: AbortController;
        state: ReturnType<typeof request>;
        isReleased: boolean;
      }[] = [];
      const holding = () => requests.filter((r) => r.state.held && !r.isReleased);
      const waiting = () => requests.filter((r) => !r.state.held && !r.state.failure);
      const check = () => {
        const owned = holding().flatMap((r) => r.names);
        assert.equal(owned.length, new Set(owned).size, 'a name with two owners');
        const reserved = new Set(owned);
        for (const waiter of waiting()) {
          const blocked = waiter.names.some((name) => reserved.has(name));
          assert.ok(blocked, `request ${waiter.owner} waits for nobody`);
          waiter.names.forEach((name) => reserved.add(name));
        }
      };
      for (const action of steps) {
        if (action.type === 'acquire') {
          const controller = new AbortController();
          const owner = requests.length + 1;
          const state = request(table, owner, action.names, controller.signal);
          requests.push({ owner, names: action.names, controller, state, isReleased: false });
        } else if (action.type === 'release') {
          const held = holding();
          const one = held[action.pick % Math.max(held.length, 1)];
          if (one) {
            one.state.held?.release();
            one.isReleased = true;
          }
        } else {
          const waiters = waiting();
          waiters[action.pick % Math.max(waiters.length, 1)]?.controller.abort(new Error('x'));
        }
        await turn();
        check();
      }
      while (holding().length > 0) {
        for (const one of holding()) {
          one.state.held?.release();
          one.isReleased = true;
        }
        await turn();
        check();
      }
      assert.deepEqual(waiting(), []);
    }),
    { numRuns: 100 },
  );
});
