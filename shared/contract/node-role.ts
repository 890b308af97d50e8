import type { NodeFlags } from './node-flags.ts';

/** Returns Ganeti's letter: D drained, O offline, else M, because every node can be the master. */
export function nodeRole({ drained, offline }: NodeFlags): 'D' | 'O' | 'M' {
  if (offline) return 'O';
  return drained ? 'D' : 'M';
}
