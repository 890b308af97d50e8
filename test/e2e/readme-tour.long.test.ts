import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab } from '../../scripts/demo/lab.ts';
import { findDifference, readTour } from './support/read-tour.ts';
import { Shell } from './support/shell.ts';

const projectDir = join(import.meta.dirname, '../..');
const TOUR_ROOT = '/tmp/tour';

test("the README's tour can be walked as it stands, and prints what it says", async (t) => {
  const steps = readTour(await readFile(join(projectDir, 'README.md'), 'utf8'));
  assert.ok(steps.length >= 15, `only ${steps.length} commands found`);
  await buildGuestImage({ log: () => undefined });
  const lab = await createLab('gnt-tour');
  const here = (text: string): string => text.replaceAll(TOUR_ROOT, lab.paths.root);
  try {
    await using shell = new Shell();
    await shell.run(`cd '${projectDir}'`);
    for (const { command, expected } of steps) {
      t.diagnostic(command);
      const { status, lines } = await shell.run(here(command));
      const printed = `${command}\n${lines.join('\n')}`;
      const isRefusal = expected.some((line) => line.startsWith('error['));
      assert.equal(status === 0, !isRefusal, printed);
      assert.equal(findDifference(expected.map(here), lines), undefined, printed);
    }
    assert.deepEqual(await lab.findLeftovers(), []);
  } finally {
    await lab.dispose();
  }
});
