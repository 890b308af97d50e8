import { once } from 'node:events';
import type { Lab } from '../../scripts/demo/lab.ts';

/** Ends a lab's noded as a crash does: it alone, in the middle of whatever it does. */
export async function killNode(lab: Lab): Promise<void> {
  const node = lab.node();
  const ended = once(node, 'exit');
  node.kill('SIGKILL');
  await ended;
}
