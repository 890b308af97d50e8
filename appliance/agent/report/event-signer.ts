import { randomBytes } from 'node:crypto';
import type { InstallEvent, SignedInstallEvent } from '#shared/contract/install-event.ts';
import { signEvent, signPath } from '#shared/secret/event-signature.ts';

const KEY_BYTES = 32;

/** Signs what the agent says, so that the host can tell it from what a script posts. */
export interface EventSigner {
  /**
   * For `agent-started`, the first event: the host believes who speaks first, and until then
   * nothing but the agent has run.
   */
  readonly keyHex: string;
  /** Numbers and signs one event; to be called once for each, in order. */
  readonly sign: (event: InstallEvent) => SignedInstallEvent;
  /** Proof for a path of the host that is the agent's alone to read. */
  readonly signPath: (path: string) => string;
}

/**
 * INVARIANT: the key is in this process' memory and in the first event only, never in a file, an
 * environment or an argument.
 */
export function createEventSigner(): EventSigner {
  const keyHex = randomBytes(KEY_BYTES).toString('hex');
  let sequence = 0;
  return {
    keyHex,
    sign: (event) => {
      sequence += 1;
      const body = JSON.stringify(event);
      return { sequence, body, mac: signEvent(keyHex, sequence, body) };
    },
    signPath: (path) => signPath(keyHex, path),
  };
}
