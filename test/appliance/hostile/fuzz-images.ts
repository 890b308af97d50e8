import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { changedImage, judgeImage, makeSamples } from './compare-image.ts';

/**
 * `node fuzz-images.ts [--count N] [--seed S] [--folder DIR]`: compares the agent with
 * `qemu-img info` on images with changed headers, some thirty per second. Exits with 1 after a
 * difference.
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const first = Number(values.seed);
const counts = { same: 0, refused: 0, different: 0 };
const folder = await mkdtemp(join(values.folder, 'gnt-images-'));
try {
  const samples = await makeSamples(folder);
  for (let seed = first; seed < first + Number(values.count); seed++) {
    const judgement = await judgeImage(changedImage(samples, seed), folder);
    counts[judgement.kind] += 1;
    if (judgement.kind === 'different') process.stdout.write(`seed ${seed}: ${judgement.how}\n`);
  }
} finally {
  await rm(folder, { recursive: true });
}
process.stdout.write(`${JSON.stringify(counts)}\n`);
process.exitCode = counts.different === 0 ? 0 : 1;
