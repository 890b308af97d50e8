import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runFuzz } from './run-fuzz.ts';
import { findTarget, targets } from './targets/all.ts';

/**
 * Fuzzes every parser of foreign bytes on all cores: `npm run fuzz -- --target dhcp --cases 1000000
 * --seed 7`.
 */
const { values } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    cases: { type: 'string', default: '10000000' },
    seed: { type: 'string' },
  },
});
const cases = Number(values.cases);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
if (!Number.isSafeInteger(cases) || cases < 1 || !Number.isSafeInteger(seed))
  throw new Error('--cases and --seed are whole numbers');
const chosen = values.target === undefined ? targets : values.target.map(findTarget);
const workers = availableParallelism();
process.stdout.write(`seed ${seed}, ${cases} inputs for each of ${chosen.length} targets\n`);

for (const target of chosen) {
  const startedAtMs = performance.now();
  const failure = await runFuzz(target, {
    seed,
    cases: Math.ceil(cases / (target.inputsPerCase ?? 1)),
    workers,
  });
  const tookS = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  if (failure === null) {
    process.stdout.write(`${target.name}: nothing found in ${tookS} s\n`);
    continue;
  }
  const directory = join(tmpdir(), 'gnt-fuzz-found');
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${target.name}-${seed}-${failure.index}`);
  await writeFile(path, failure.input);
  process.stdout.write(
    `${target.name}: FOUND in ${tookS} s, seed ${seed}, case ${failure.index}\n${failure.reason}\n` +
      `its input: ${path}; keep it as fixtures/fuzz/${target.name}/NAME\n`,
  );
  process.exitCode = 1;
}
