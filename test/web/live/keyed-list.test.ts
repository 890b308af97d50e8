import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedList } from '../../../web/live/keyed-list.ts';

/** A browser's frame. */
const frames: (() => void)[] = [];
globalThis.requestAnimationFrame = (call) => frames.push(() => call(0));

function nextFrame(): void {
  for (const call of frames.splice(0)) call();
}

test('many changes are published once per frame', () => {
  const list = new KeyedList<number, string>();
  let renders = -1;
  list.items.subscribe(() => (renders += 1));
  for (let key = 0; key < 1000; key++) list.set(key, 'a');
  assert.equal(renders, 0);
  nextFrame();
  assert.equal(renders, 1);
  assert.equal(list.items.value.length, 1000);
});

test('a change that arrives while the list is read is newer than the list', () => {
  const list = new KeyedList<number, string>();
  const { add, finish } = list.startReading();
  list.set(1, 'changed');
  list.delete(2);
  add(1, 'old');
  add(2, 'old');
  add(3, 'old');
  list.set(4, 'new');
  assert.equal(list.isLoaded.value, false);
  finish();
  assert.deepEqual(list.items.value, ['changed', 'old', 'new']);
  assert.equal(list.isLoaded.value, true);
});

test('items that a new list does not contain disappear', () => {
  const list = new KeyedList<number, string>();
  list.set(1, 'a');
  list.set(2, 'b');
  const { add, finish } = list.startReading();
  add(2, 'b');
  finish();
  assert.deepEqual(list.items.value, ['b']);
});

test('a later reading ends an earlier one', () => {
  const list = new KeyedList<number, string>();
  const earlier = list.startReading();
  earlier.add(1, 'a');
  const later = list.startReading();
  earlier.add(2, 'b');
  later.add(3, 'c');
  earlier.finish();
  assert.equal(list.isLoaded.value, false);
  later.finish();
  assert.deepEqual(list.items.value, ['c']);
});

test('another user starts with an empty list that is not loaded', () => {
  const list = new KeyedList<number, string>();
  const { add, finish } = list.startReading();
  add(1, 'a');
  finish();
  list.clear();
  assert.deepEqual([list.items.value, list.isLoaded.value], [[], false]);
});
