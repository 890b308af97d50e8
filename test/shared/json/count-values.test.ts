import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installEventBatch, MAX_EVENTS_PER_BATCH } from '#shared/contract/install-event.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { createSeededRandom } from '../../lab/seeded-random.ts';

const count = (text: string, limit = 1e9): number => countJsonValues(Buffer.from(text), limit);

/** Counts every value of a parsed text, including itself. */
function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, part) => sum + countOf(part), 1);
}

test('never counts fewer values than a parser makes, whatever the strings hold', () => {
  const random = createSeededRandom(7);
  const words = ['', 'a', '"', '\\', '\\"', ',', '{[,', '\\\\', '\u{1f600}', '\n'];
  const make = (depth: number): unknown => {
    const kind = random.below(depth > 4 ? 3 : 5);
    if (kind === 0) return random.below(100);
    if (kind === 1) return random.pick(words);
    if (kind === 2) return null;
    const parts = Array.from({ length: random.below(4) }, () => make(depth + 1));
    if (kind === 3) return parts;
    return Object.fromEntries(parts.map((part, index) => [`${random.pick(words)}${index}`, part]));
  };
  for (let round = 0; round < 2000; round += 1) {
    const value = make(0);
    const counted = count(JSON.stringify(value));
    assert.ok(counted >= countOf(value), JSON.stringify(value));
    assert.ok(counted <= 2 * countOf(value), JSON.stringify(value));
  }
});

test('ends at its limit, and makes nothing of a quarter of a MiB of empty objects', () => {
  assert.equal(count(`[${'{},'.repeat(87_000)}{}]`, 8192), 8193);
  assert.equal(count(`["${',{['.repeat(80_000)}"]`), 2);
});

test('the largest batch that an agent may send is within the bound of a batch', () => {
  const dumpBytes = Array.from({ length: 16 }, (_, index) => index);
  const event = { type: 'result', atMs: 1, outcome: { status: 'success', dumpBytes } };
  const batch = JSON.stringify(Array.from({ length: MAX_EVENTS_PER_BATCH }, () => event));
  assert.ok(installEventBatch.safeParse(parseJson(batch)).success);
  assert.ok(count(batch) <= MAX_EVENTS_PER_BATCH * 32);
});
