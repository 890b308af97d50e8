import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { compareArchive, knownRefusals } from './compare-archive.ts';
import { randomArchive } from './random-archive.ts';

/**
 * `node fuzz-archives.ts [--count N] [--seed S] [--folder DIR]`: random archives, ours against GNU
 * tar. Ends with 1 after a difference.
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const first = Number(values.seed);
const counts = { same: 0, refused: 0, refusedButTaken: 0, different: 0 };
for (let seed = first; seed < first + Number(values.count); seed += 1) {
  const result = await compareArchive(randomArchive(seed), values.folder);
  counts[result.kind] += 1;
  if (result.kind === 'different') process.stdout.write(`seed ${seed}: ${result.how}\n`);
  if (result.kind !== 'refused' || result.tarSays !== null) continue;
  counts.refusedButTaken += 1;
  if (knownRefusals.some((known) => known.test(result.why))) continue;
  counts.different += 1;
  process.stdout.write(`seed ${seed}: refused, and GNU tar takes it: ${result.why}\n`);
}
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.exitCode = counts.different > 0 ? 1 : 0;
