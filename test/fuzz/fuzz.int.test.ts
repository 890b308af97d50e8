import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { testSeed } from '../lab/test-seed.ts';
import { runFuzz } from './run-fuzz.ts';
import { targets } from './targets/all.ts';

/**
 * Two minutes for all targets; `npm run fuzz` runs a hundred times as many, `npm run test:fast` a
 * tenth.
 */
const INPUTS = Number(process.env['GNT_FUZZ_CASES'] ?? 100_000);

for (const target of targets) {
  test(`${INPUTS} generated inputs find nothing in ${target.name}`, async (t) => {
    const seed = testSeed(t);
    const failure = await runFuzz(target, {
      seed,
      cases: Math.ceil(INPUTS / (target.inputsPerCase ?? 1)),
      workers: availableParallelism(),
    });
    if (failure === null) return;
    const path = join(await mkdtemp(join(tmpdir(), 'gnt-fuzz-')), target.name);
    await writeFile(path, failure.input);
    assert.fail(`seed ${seed}, case ${failure.index}, its input in ${path}: ${failure.reason}`);
  });
}
