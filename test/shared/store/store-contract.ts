import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fc } from '../../lab/fast-check.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Watch } from '#shared/store/store.ts';

export interface StoreEngine {
  readonly name: string;
  /** A store with its own data; `reopen` gives another client of the same data. */
  open(): Promise<{ store: Store; reopen(): Promise<Store> }>;
}

const conflictAt = (collection: string, id: string) => (error: unknown) =>
  error instanceof StoreConflict && error.collection === collection && error.id === id;

const CHANGE_TIMEOUT_MS = 30_000;

/** Records the reports of a watch, and waits for expected ones. */
export function follow(
  store: Store,
  collection: string,
): {
  readonly told: readonly (readonly string[] | null)[];
  readonly until: (isThere: () => boolean) => Promise<void>;
} & Watch {
  const told: (readonly string[] | null)[] = [];
  let wake = (): void => undefined;
  const watch = store.watch(collection, (ids) => {
    told.push(ids);
    wake();
  });
  const until = async (isThere: () => boolean): Promise<void> => {
    const late = AbortSignal.timeout(CHANGE_TIMEOUT_MS);
    while (!isThere()) {
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        late.addEventListener('abort', () => reject(new Error(JSON.stringify(told))));
      });
    }
  };
  return { told, until, ...watch };
}

/** The contract of every engine. */
export function testStoreContract(engine: StoreEngine): void {
  const storeTest = (
    title: string,
    body: (context: { store: Store; reopen(): Promise<Store> }) => Promise<void>,
  ): void => {
    test(`${engine.name}: ${title}`, async () => {
      const context = await engine.open();
      try {
        await body(context);
      } finally {
        await context.store.close();
      }
    });
  };

  storeTest('an id that nobody wrote is undefined, its collection empty', async ({ store }) => {
    assert.equal(await store.get('instances', 'web1'), undefined);
    assert.deepEqual(await store.list('instances'), []);
  });

  storeTest('a record comes back as it went in, with revision 1', async ({ store }) => {
    const value = {
      text: 'ü €\n\0 \u2028"\\',
      list: [],
      map: {},
      zero: 0,
      big: 2 ** 53,
      tiny: 1e-7,
      no: null,
    };
    assert.deepEqual(
      await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value }]),
      [1],
    );
    assert.deepEqual(await store.get('a', 'x'), { id: 'x', revision: 1, value });
  });

  storeTest('any JSON value survives the way there and back', async ({ store }) => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ noUnicodeString: false }), async (value) => {
        const normal: unknown = JSON.parse(JSON.stringify(value));
        await store.commit([{ collection: 'a', id: 'x', expected: 'any', value }]);
        assert.deepEqual((await store.get('a', 'x'))?.value, normal);
      }),
      { numRuns: 50 },
    );
  });

  storeTest('each write of a record raises its revision by one', async ({ store }) => {
    await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
    assert.deepEqual(
      await store.commit([{ collection: 'a', id: 'x', expected: 1, value: 2 }]),
      [2],
    );
    assert.deepEqual(
      await store.commit([{ collection: 'a', id: 'x', expected: 'any', value: 3 }]),
      [3],
    );
    assert.deepEqual(await store.get('a', 'x'), { id: 'x', revision: 3, value: 3 });
  });

  storeTest('a writer that saw an older revision is refused by name', async ({ store }) => {
    await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
    await store.commit([{ collection: 'a', id: 'x', expected: 1, value: 2 }]);
    await assert.rejects(
      store.commit([{ collection: 'a', id: 'x', expected: 1, value: 9 }]),
      conflictAt('a', 'x'),
    );
    assert.equal((await store.get('a', 'x'))?.value, 2);
  });

  storeTest(
    'an id that exists cannot be claimed, one that does not cannot be updated',
    async ({ store }) => {
      await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
      await assert.rejects(
        store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 2 }]),
        conflictAt('a', 'x'),
      );
      await assert.rejects(
        store.commit([{ collection: 'a', id: 'y', expected: 1, value: 2 }]),
        conflictAt('a', 'y'),
      );
    },
  );

  storeTest('one failing write undoes the whole commit', async ({ store }) => {
    await store.commit([{ collection: 'ips', id: '169.254.0.5', expected: 'absent', value: 'a' }]);
    await assert.rejects(
      store.commit([
        { collection: 'instances', id: 'b', expected: 'absent', value: {} },
        { collection: 'instances', id: 'zz', expected: 'any', value: undefined },
        { collection: 'ips', id: '169.254.0.5', expected: 'absent', value: 'b' },
        { collection: 'macs', id: 'm', expected: 'absent', value: 'b' },
      ]),
      conflictAt('ips', '169.254.0.5'),
    );
    assert.deepEqual(await store.list('instances'), []);
    assert.deepEqual(await store.list('macs'), []);
    assert.equal((await store.get('ips', '169.254.0.5'))?.value, 'a');
  });

  storeTest('a deletion answers 0, and the id can be claimed again', async ({ store }) => {
    await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 1 }]);
    const revisions = await store.commit([
      { collection: 'a', id: 'x', expected: 1, value: undefined },
      { collection: 'a', id: 'y', expected: 'absent', value: 1 },
      { collection: 'a', id: 'never', expected: 'any', value: undefined },
    ]);
    assert.deepEqual(revisions, [0, 1, 0]);
    assert.equal(await store.get('a', 'x'), undefined);
    await assert.rejects(
      store.commit([{ collection: 'a', id: 'x', expected: 1, value: undefined }]),
      conflictAt('a', 'x'),
    );
    await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 2 }]);
    assert.equal((await store.get('a', 'x'))?.value, 2);
  });

  storeTest('a listing is ordered by id and holds its own collection only', async ({ store }) => {
    const ids = ['b', 'a', '10', '9', 'ä', 'a.b', 'Z', '1'];
    await store.commit(
      ids.map((id) => ({ collection: 'a', id, expected: 'absent' as const, value: id })),
    );
    await store.commit([{ collection: 'ab', id: 'other', expected: 'absent', value: 1 }]);
    const expected = ['1', '10', '9', 'Z', 'a', 'a.b', 'b', 'ä'];
    assert.deepEqual(
      (await store.list('a')).map(({ id }) => id),
      expected,
    );
  });

  storeTest(
    'some records come in the order of their ids, without those that are not there',
    async (context) => {
      const { store } = context;
      for (const [collection, id] of [
        ['a', 'x'],
        ['a', 'ü'],
        ['b', 'y'],
      ] as const)
        await store.commit([{ collection, id, expected: 'absent', value: { id } }]);
      await store.commit([{ collection: 'a', id: 'x', expected: 1, value: { id: 'x', of: 2 } }]);
      assert.deepEqual(await store.getSome('a', ['ü', 'y', 'none', 'x']), [
        { id: 'ü', revision: 1, value: { id: 'ü' } },
        { id: 'x', revision: 2, value: { id: 'x', of: 2 } },
      ]);
      assert.deepEqual(await store.getSome('a', []), []);
      await assert.rejects(store.getSome('a', ['x', '']), /not a record id/);
    },
  );

  storeTest('a scan gives each record of its own collection, in slices', async ({ store }) => {
    const ids = Array.from({ length: 450 }, (_, index) => `x${index}`);
    // Large enough that Redis does not keep them in one piece.
    const value = 'v'.repeat(100);
    await store.commit(
      ids.map((id) => ({ collection: 'a', id, expected: 'absent' as const, value })),
    );
    await store.commit([{ collection: 'ab', id: 'other', expected: 'absent', value }]);
    const found = new Map<string, unknown>();
    let largest = 0;
    for await (const slice of store.scan('a')) {
      largest = Math.max(largest, slice.length);
      for (const { id, revision, ...rest } of slice) found.set(id, [revision, rest.value]);
    }
    assert.deepEqual(new Set(found.keys()), new Set(ids));
    assert.deepEqual(found.get('x7'), [1, value]);
    assert.ok(largest < 300, `${largest} at once`);
    assert.deepEqual(new Set(await store.ids('a')), new Set(ids));
    assert.deepEqual(await store.ids('nothing'), []);
  });

  storeTest('who watches a collection is told the ids that change in it', async ({ store }) => {
    const { told, until, end, caughtUp } = follow(store, 'a');
    await until(() => told.length > 0);
    assert.equal(told[0], null, 'all of it is to be read first');
    const write = (collection: string, id: string, value?: number): Promise<unknown> =>
      store.commit([{ collection, id, expected: 'any', value }]);
    await write('a', 'x', 1);
    await write('b', 'not here', 1);
    await assert.rejects(store.commit([{ collection: 'a', id: 'refused', expected: 7, value: 1 }]));
    await write('a', 'y', 1);
    await write('a', 'x');
    const ids = (): readonly string[] => told.flatMap((each) => each ?? []);
    await until(() => ids().length >= 3);
    assert.deepEqual(ids(), ['x', 'y', 'x']);
    assert.ok(!told.slice(1).includes(null));
    await write('a', 'w', 1);
    await caughtUp();
    assert.equal(ids().at(-1), 'w');
    end();
    await write('a', 'z', 1);
    await store.get('a', 'z');
    assert.ok(!ids().includes('z'));
  });

  storeTest('of many writers that claim one id at once exactly one wins', async (context) => {
    const { store } = context;
    const other = await context.reopen();
    try {
      const claims = Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? store : other).commit([
          { collection: 'ips', id: '169.254.1.1', expected: 'absent', value: index },
          { collection: 'instances', id: `i${index}`, expected: 'absent', value: index },
        ]),
      );
      const results = await Promise.allSettled(claims);
      const winners = results.flatMap((result, index) =>
        result.status === 'fulfilled' ? [index] : [],
      );
      assert.equal(winners.length, 1);
      assert.equal((await other.get('ips', '169.254.1.1'))?.value, winners[0]);
      assert.deepEqual(
        (await store.list('instances')).map(({ value }) => value),
        winners,
      );
      for (const result of results) {
        if (result.status === 'rejected')
          assert.ok(conflictAt('ips', '169.254.1.1')(result.reason));
      }
    } finally {
      await other.close();
    }
  });

  storeTest('compare-and-set loops of two clients lose no update', async (context) => {
    const { store } = context;
    const other = await context.reopen();
    try {
      await store.commit([{ collection: 'a', id: 'count', expected: 'absent', value: 0 }]);
      const add = async (client: Store): Promise<void> => {
        for (let done = 0; done < 25;) {
          const seen = await client.get('a', 'count');
          assert.ok(seen);
          const value = (seen.value as number) + 1;
          try {
            await client.commit([{ collection: 'a', id: 'count', expected: seen.revision, value }]);
            done += 1;
          } catch (error) {
            if (!isAppError(error, 'CONFLICT')) throw error;
          }
        }
      };
      await Promise.all([add(store), add(other)]);
      assert.deepEqual(await store.get('a', 'count'), { id: 'count', revision: 51, value: 50 });
    } finally {
      await other.close();
    }
  });

  storeTest('a value over the limit is refused and changes nothing', async ({ store }) => {
    const value = 'x'.repeat(16 * 1024 * 1024);
    await assert.rejects(
      store.commit([
        { collection: 'a', id: 'small', expected: 'absent', value: 1 },
        { collection: 'a', id: 'huge', expected: 'absent', value },
      ]),
      (error: unknown) => isAppError(error, 'VALIDATION') && error.message.includes('a/huge'),
    );
    assert.deepEqual(await store.list('a'), []);
  });

  storeTest('a commit with one id twice, and a bad id, are bugs', async ({ store }) => {
    const write = { collection: 'a', id: 'x', expected: 'any', value: 1 } as const;
    await assert.rejects(store.commit([write, write]), /two writes of a\/x/);
    await assert.rejects(store.get('a', ''), /not a record id/);
    await assert.rejects(store.list('A b'), /not a collection/);
    assert.deepEqual(await store.commit([]), []);
  });
}
