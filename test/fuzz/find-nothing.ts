import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runFuzz } from './run-fuzz.ts';
import { targets } from './targets/all.ts';

/** Fixed, so that a run gives the same result for the same program. */
const SEED = 1;

/** Each worker must load all imports of its target first. */
const INPUTS_PER_WORKER = 20_000;

/**
 * Adds one test for each target. A larger number of inputs includes the inputs of a smaller one.
 */
export function findNothing(inputs: number): void {
  for (const target of targets) {
    test(`${inputs} generated inputs find nothing in ${target.name}`, async () => {
      const failure = await runFuzz(target, {
        seed: SEED,
        cases: Math.ceil(inputs / (target.inputsPerCase ?? 1)),
        workers: Math.min(availableParallelism(), Math.ceil(inputs / INPUTS_PER_WORKER)),
      });
      if (failure === null) return;
      const path = join(await mkdtemp(join(tmpdir(), 'gnt-fuzz-')), target.name);
      await writeFile(path, failure.input);
      assert.fail(`seed ${SEED}, case ${failure.index}, its input in ${path}: ${failure.reason}`);
    });
  }
}
