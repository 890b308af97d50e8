import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab } from '../../scripts/demo/lab.ts';
import { Shell } from './support/shell.ts';
import { readPage, walkPage } from './support/walk-page.ts';

const projectDir = join(import.meta.dirname, '../..');
const TOUR_ROOT = '/tmp/tour';

test('the tutorial of the first instance works as shown, and leaves nothing', async (t) => {
  const steps = await readPage('docs/tutorial/first-instance.md');
  assert.ok(steps.length >= 15, `only ${steps.length} commands found`);
  await buildGuestImage({ log: () => undefined });
  const lab = await createLab('gnt-tour');
  try {
    await using shell = new Shell();
    await shell.run(`cd '${projectDir}'`);
    await walkPage(steps, () => shell, {
      here: (text) => text.replaceAll(TOUR_ROOT, lab.paths.root),
      tell: (command) => t.diagnostic(command),
    });
    assert.deepEqual(await lab.findLeftovers(), []);
  } finally {
    await lab.dispose();
  }
});
