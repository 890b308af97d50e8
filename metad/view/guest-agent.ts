import { type FixedLeaf, textLeaf } from './leaf.ts';

export interface GuestAgent {
  readonly agent: FixedLeaf;
  /** A script that contains the agent and enables it in every boot. */
  readonly enable: FixedLeaf;
}

/**
 * @param agent metad/guest/agent.sh
 * @param enable metad/guest/enable.sh
 */
export function createGuestAgent(agent: string, enable: string): GuestAgent {
  return {
    agent: textLeaf(agent),
    enable: textLeaf(enable.replace('@AGENT@\n', () => agent)),
  };
}
