import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runFuzz } from './run-fuzz.ts';
import { targets } from './targets/all.ts';

/** `npm run fuzz` tries a hundred times as many, other ones each time. */
const INPUTS = Number(process.env['GNT_FUZZ_CASES'] ?? 100_000);
/** The same inputs each time: a run of the suite tells whether the program is right, and not how lucky it was. */
const SEED = 1;

for (const target of targets) {
  test(`${INPUTS} generated inputs find nothing in ${target.name}`, async () => {
    const failure = await runFuzz(target, {
      seed: SEED,
      cases: Math.ceil(INPUTS / (target.inputsPerCase ?? 1)),
      workers: availableParallelism(),
    });
    if (failure === null) return;
    const path = join(await mkdtemp(join(tmpdir(), 'gnt-fuzz-')), target.name);
    await writeFile(path, failure.input);
    assert.fail(`seed ${SEED}, case ${failure.index}, its input in ${path}: ${failure.reason}`);
  });
}
