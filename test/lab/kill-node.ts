import { once } from 'node:events';
import type { Lab } from '../../scripts/demo/lab.ts';

/** Kills only the noded of a lab, as a crash does. */
export async function killNode(lab: Lab): Promise<void> {
  const node = lab.node();
  const ended = once(node, 'exit');
  node.kill('SIGKILL');
  await ended;
}
