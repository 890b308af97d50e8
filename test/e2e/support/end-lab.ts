import assert from 'node:assert/strict';
import type { Lab } from '../../../scripts/demo/lab.ts';

/** Stops a running node, checks that it ended well and left nothing, and removes it. */
export async function endLab(lab: Lab): Promise<void> {
  const status = await lab.stopNode();
  await disposeLab(lab);
  assert.equal(status, 0);
}

/** Does the same for a node that may have been killed. */
export async function disposeLab(lab: Lab): Promise<void> {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
}
