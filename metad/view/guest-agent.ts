import { type FixedLeaf, textLeaf } from './leaf.ts';

/** What runs an instance's run lists in the guest: the same for all guests of this process. */
export interface GuestAgent {
  readonly agent: FixedLeaf;
  /** A script that has the agent in it, and has it run in every boot. */
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
