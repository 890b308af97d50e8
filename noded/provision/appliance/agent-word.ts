import type {
  InstallEvent,
  InstallReport,
  SignedInstallEvent,
} from '#shared/contract/install-event.ts';
import { isEventSigned, parseEvent, readIntroduction } from '#shared/secret/event-signature.ts';

/**
 * Tells what the agent of one appliance says from what others post in its name: its scripts are
 * root beside it, and reach the same address.
 *
 * INVARIANTS: the key is the one of the first event that brings one, since nothing but the agent
 * runs before it was acknowledged; an event is handed on once, in the order of its numbers.
 */
export class AgentWord {
  #keyHex: string | null = null;
  #lastSequence = 0;
  #forged = 0;
  #lost = 0;

  /** The agent's key; null before its first word. */
  get keyHex(): string | null {
    return this.#keyHex;
  }

  /** Reports that the agent did not sign. */
  get forged(): number {
    return this.#forged;
  }

  /** Events of the agent that never came. */
  get lost(): number {
    return this.#lost;
  }

  /** @returns the agent's event; null for one that is forged, or that came before */
  take(report: InstallReport): InstallEvent | null {
    const event = 'body' in report ? this.#open(report) : null;
    if (!('body' in report) || event === null) {
      this.#forged += 1;
      return null;
    }
    // A batch that was not acknowledged comes again.
    if (report.sequence <= this.#lastSequence) return null;
    this.#lost += report.sequence - this.#lastSequence - 1;
    this.#lastSequence = report.sequence;
    return event;
  }

  #open(report: SignedInstallEvent): InstallEvent | null {
    // What a script makes up is not even read once there is a key.
    if (this.#keyHex !== null)
      return isEventSigned(report, this.#keyHex) ? parseEvent(report.body) : null;
    const introduced = readIntroduction(report);
    this.#keyHex = introduced?.keyHex ?? null;
    return introduced?.event ?? null;
  }
}
