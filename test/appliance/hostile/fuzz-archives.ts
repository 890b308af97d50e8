import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { createSeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../../fuzz/mutate.ts';
import { compareArchive } from './compare-archive.ts';
import { judgeArchives } from './judge-archives.ts';
import { randomArchive } from './random-archive.ts';
import { randomSparseArchive } from './random-sparse.ts';

/**
 * `node fuzz-archives.ts [--count N] [--seed S] [--folder DIR]`: compares the agent with GNU tar on
 * random archives, some hundred per second. Exits with 1 after a difference.
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const AT_ONCE = 400;
/** One archive in this many is unpacked twice, once as by the installer. */
const COMPARED_ONE_IN = 200;

/** Two thirds are plain, a sixth has sparse maps, a sixth is changed somewhere. */
function archiveOf(seed: number): Buffer {
  const random = createSeededRandom(seed);
  const kind = random.below(6);
  if (kind === 0) return randomSparseArchive(seed);
  if (kind === 1) return mutate(randomArchive(seed), random);
  return randomArchive(seed);
}

const first = Number(values.seed);
const end = first + Number(values.count);
const counts = { same: 0, refused: 0, different: 0, comparedTwice: 0 };
for (let from = first; from < end; from += AT_ONCE) {
  const seeds = Array.from({ length: Math.min(AT_ONCE, end - from) }, (_, index) => from + index);
  const judgements = await judgeArchives(seeds.map(archiveOf), values.folder);
  for (const [index, judgement] of judgements.entries()) {
    counts[judgement.kind] += 1;
    if (judgement.kind === 'different')
      process.stdout.write(`seed ${from + index}: ${judgement.how}\n`);
  }
  for (const seed of seeds.filter((each) => each % COMPARED_ONE_IN === 0)) {
    const compared = await compareArchive(archiveOf(seed), values.folder);
    counts.comparedTwice += 1;
    if (compared.kind !== 'different') continue;
    counts.different += 1;
    process.stdout.write(`seed ${seed}: ${compared.how}\n`);
  }
}
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.exitCode = counts.different > 0 ? 1 : 0;
