import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NamedOrder, type Named } from '../../../noded/records/named-order.ts';

const named = (uuid: string, name: string): Named => ({ uuid, name });
const byName = (a: Named, b: Named): number => (a.name < b.name ? -1 : 1);

/** Yields pseudo-random numbers, the same in each run. */
function* numbers(): Generator<number, never> {
  for (let state = 1; ;) yield (state = (state * 48_271) % 2_147_483_647);
}

test('whatever comes, changes its name and goes, the list is that of names in their order', () => {
  const chance = numbers();
  const order = new NamedOrder<Named>();
  const expected = new Map<string, Named>();
  const lists: { readonly given: readonly Named[]; readonly copy: readonly Named[] }[] = [];
  for (let step = 0; step < 3000; step += 1) {
    const some = Array.from({ length: chance.next().value % 40 }, () =>
      named(`u${chance.next().value % 500}`, `web${chance.next().value}`),
    );
    if (chance.next().value % 3 === 0) {
      const uuid = `u${chance.next().value % 500}`;
      order.delete(uuid);
      expected.delete(uuid);
    } else {
      order.add(some);
      for (const each of some) expected.set(each.uuid, each);
    }
    if (chance.next().value % 5 > 0) continue;
    const given = order.list();
    assert.deepEqual(given, [...expected.values()].sort(byName), `after ${step} steps`);
    lists.push({ given, copy: [...given] });
  }
  // A slow reader keeps its list unchanged.
  for (const { given, copy } of lists) assert.deepEqual(given, copy);
});

test('who asks after one change does not look at all the others', () => {
  let reads = 0;
  const counted = (uuid: string, name: string): Named => ({
    uuid,
    get name() {
      reads += 1;
      return name;
    },
  });
  const order = new NamedOrder<Named>();
  const names = Array.from({ length: 10_000 }, (_, index) => `n${String(index).padStart(5, '0')}`);
  order.add(names.map((name, index) => counted(`u${index}`, name)));
  order.list();
  reads = 0;
  order.add([counted('u5000', 'n07000b'), counted('fresh', 'n03000b')]);
  order.delete('u9');
  const list = order.list();
  assert.ok(reads < 200, `${reads} names were looked at`);
  assert.equal(list.length, 10_000);
  assert.deepEqual(
    list.map(({ name }) => name),
    [
      ...names.filter((name) => name !== 'n05000' && name !== 'n00009'),
      'n07000b',
      'n03000b',
    ].sort(),
  );
});

test('a list that nothing changed is made once, and what is gone is not kept', () => {
  const order = new NamedOrder<Named>();
  order.add([named('b', 'b'), named('a', 'a')]);
  assert.equal(order.list(), order.list());
  let reads = 0;
  for (let index = 0; index < 5000; index += 1) {
    const one = {
      uuid: `u${index}`,
      get name() {
        reads += 1;
        return `n${index}`;
      },
    };
    order.add([one]);
    order.delete(one.uuid);
  }
  reads = 0;
  assert.deepEqual(order.list(), [named('a', 'a'), named('b', 'b')]);
  assert.ok(reads < 4000, `of those that are gone, ${reads} names were looked at`);
});
