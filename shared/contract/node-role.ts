import type { NodeFlags } from './node-flags.ts';

/** Ganeti's letter: D drained, O offline, M any other, since every node can do a master's work. */
export function nodeRole({ drained, offline }: NodeFlags): 'D' | 'O' | 'M' {
  if (offline) return 'O';
  return drained ? 'D' : 'M';
}
