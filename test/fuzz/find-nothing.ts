import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runFuzz } from './run-fuzz.ts';
import { targets } from './targets/all.ts';

/**
 * The same inputs each time: a run tells whether the program is right, and not how lucky it was.
 */
const SEED = 1;

/** A thread of its own begins for as many, which loads all that its target imports. */
const INPUTS_PER_WORKER = 20_000;

/** One test for each target, of as many generated inputs: the more, the same ones and others. */
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
