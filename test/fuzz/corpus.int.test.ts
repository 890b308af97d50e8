import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { targets } from './targets/all.ts';

const corpus = join(import.meta.dirname, '../../fixtures/fuzz');
/**
 * Ten times the bytes take 10 times as long with linear work, and 100 times with quadratic work.
 */
const MAX_TIME_RATIO = 40;
/** Shorter times are too noisy to compare. */
const LEAST_MS = 1;
const ATTEMPTS = 10;

for (const target of targets) {
  const directory = join(corpus, target.name);
  for (const name of existsSync(directory) ? readdirSync(directory).sort() : []) {
    test(`${target.name}: ${name} is not found again`, async () => {
      const input = await readFile(join(directory, name));
      await using oracle = await target.open();
      const shortest = async (bytes: Buffer): Promise<number> => {
        let least = Infinity;
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
          const startedAtMs = performance.now();
          await oracle.check(bytes);
          least = Math.min(least, performance.now() - startedAtMs);
        }
        return least;
      };
      const tookMs = await shortest(input);
      const tenthMs = await shortest(input.subarray(0, Math.ceil(input.length / 10)));
      assert.ok(
        tookMs <= Math.max(tenthMs, LEAST_MS) * MAX_TIME_RATIO,
        `${tookMs} ms, ${tenthMs} ms for a tenth`,
      );
    });
  }
}

test('every folder of the corpus belongs to a target', () => {
  const names = targets.map(({ name }) => name);
  assert.deepEqual(
    readdirSync(corpus).filter((name) => !names.includes(name)),
    [],
  );
});
