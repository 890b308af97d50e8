import { randomBytes } from 'node:crypto';
import type { InstallEvent, SignedInstallEvent } from '#shared/contract/install-event.ts';
import { signEvent, signPath } from '#shared/secret/event-signature.ts';

const KEY_BYTES = 32;

/**
 * Signs the agent's events, so that the host can tell them from a script's.
 * INVARIANT: the key is only in this process' memory and in the first event, never in a file, an
 * environment or an argument.
 */
export function createEventSigner() {
  /**
   * Sent in `agent-started`, the first event: the host trusts the first key, and only the agent has
   * run by that time.
   */
  const keyHex = randomBytes(KEY_BYTES).toString('hex');
  let sequence = 0;
  return {
    keyHex,
    /** Numbers and signs one event. Must be called once for each, in order. */
    sign: (event: InstallEvent): SignedInstallEvent => {
      sequence += 1;
      const body = JSON.stringify(event);
      return { sequence, body, mac: signEvent(keyHex, sequence, body) };
    },
    /** Returns the proof for a path that only the agent may read. */
    signPath: (path: string): string => signPath(keyHex, path),
  };
}
