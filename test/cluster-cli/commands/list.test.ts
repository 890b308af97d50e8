import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printList } from '../../../cluster-cli/commands/list.ts';
import type { Context } from '../../../cluster-cli/terminal/context.ts';

interface Item {
  readonly name: string;
  readonly of: unknown;
}

function printed(items: readonly Item[]): readonly string[] {
  const texts: string[] = [];
  // A list only prints to its context.
  const context = { print: (text: string) => void texts.push(text) } as unknown as Context;
  const field = { name: 'name', title: 'Name', kind: 'text' as const, description: '' };
  const listing = {
    ...{ items, names: [], defaultSort: 'name', nameOf: ({ name }: Item) => name },
    table: { fields: [{ ...field, get: ({ name }: Item) => name }], defaults: ['name'] },
    notFound: () => assert.fail(),
  };
  printList(context, listing, { headers: true, json: true });
  return texts;
}

test('an array of JSON is the one that JSON.stringify writes, in pieces', () => {
  for (const count of [0, 1, 2, 999, 1000, 1001, 2500]) {
    const items = Array.from({ length: count }, (_, index) => ({
      name: `web${index}`,
      of: { list: [1, { two: '\u2028\n' }], none: [], empty: {} },
    }));
    const texts = printed(items);
    assert.equal(texts.join('\n'), JSON.stringify(items, null, 2));
    assert.ok(texts.length >= count / 1000);
  }
});
