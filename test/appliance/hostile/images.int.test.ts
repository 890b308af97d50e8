import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { changedImage, judgeImage, makeSamples } from './compare-image.ts';

const COUNT = 100;
let folder: string;
let samples: Awaited<ReturnType<typeof makeSamples>>;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gnt-images-'));
  samples = await makeSamples(folder);
});
after(() => rm(folder, { recursive: true }));

test('images of qemu-img are read as by qemu-img, and refused where they need other files', async () => {
  for (const { name, bytes, expected } of samples)
    assert.deepEqual(await judgeImage(bytes, folder), { kind: expected }, name);
});

test('an image with a changed header is read as by qemu-img, or refused', async () => {
  const kinds = new Set<string>();
  for (let seed = 1; seed <= COUNT; seed++) {
    const judgement = await judgeImage(changedImage(samples, seed), folder);
    assert.notEqual(judgement.kind, 'different', `seed ${seed}: ${JSON.stringify(judgement)}`);
    kinds.add(judgement.kind);
  }
  assert.deepEqual([...kinds].sort(), ['refused', 'same']);
});

test('a file that is a vdi and something else at once is refused', async () => {
  const vdi = samples.find(({ name }) => name === 'vdi')?.bytes ?? assert.fail('no vdi');
  for (const { name, bytes } of samples) {
    if (name.startsWith('vdi') || name === 'raw') continue;
    const both = Buffer.from(bytes);
    vdi.copy(both, 64, 64, 68);
    assert.deepEqual(await judgeImage(both, folder), { kind: 'refused' }, name);
  }
});
