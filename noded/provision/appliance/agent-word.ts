import type {
  InstallEvent,
  InstallReport,
  SignedInstallEvent,
} from '#shared/contract/install-event.ts';
import { isEventSigned, parseEvent, readIntroduction } from '#shared/secret/event-signature.ts';

/**
 * Separates the events of an appliance's agent from forgeries: scripts run as root in the same
 * appliance, and can post to the same address.
 *
 * INVARIANTS: the key is that of the first event that brings a key, because only the agent runs
 * before that event is acknowledged; each event is returned once, in the order of its number.
 */
export class AgentWord {
  #keyHex: string | null = null;
  #lastSequence = 0;
  #forged = 0;
  #lost = 0;

  /** Null before the agent's first event. */
  get keyHex(): string | null {
    return this.#keyHex;
  }

  /** Number of reports without the agent's signature. */
  get forged(): number {
    return this.#forged;
  }

  /** Number of events of the agent that never arrived. */
  get lost(): number {
    return this.#lost;
  }

  /** @returns the agent's event; null for a forged or repeated event */
  take(report: InstallReport): InstallEvent | null {
    const event = 'body' in report ? this.#open(report) : null;
    if (!('body' in report) || event === null) {
      this.#forged += 1;
      return null;
    }
    // The agent repeats a batch until it is acknowledged.
    if (report.sequence <= this.#lastSequence) return null;
    this.#lost += report.sequence - this.#lastSequence - 1;
    this.#lastSequence = report.sequence;
    return event;
  }

  #open(report: SignedInstallEvent): InstallEvent | null {
    // With a key, only signed bodies are parsed.
    if (this.#keyHex !== null)
      return isEventSigned(report, this.#keyHex) ? parseEvent(report.body) : null;
    const introduced = readIntroduction(report);
    this.#keyHex = introduced?.keyHex ?? null;
    return introduced?.event ?? null;
  }
}
